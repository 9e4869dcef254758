import * as v from 'valibot';

export const string = (pattern: RegExp, description: string) =>
  v.pipe(v.string(), v.regex(pattern), v.description(description));
export const list = <Item extends v.GenericSchema>(item: Item, description: string) =>
  v.pipe(v.array(item), v.minLength(1), v.description(description));
export const oneOf = <const Options extends readonly string[]>(options: Options, meaning: string) =>
  v.pipe(v.picklist(options), v.description(`Write ${formatChoice(options)}. ${meaning}`));

function formatChoice(options: readonly string[]): string {
  const quoted = options.map((option) => `"${option}"`);
  return quoted.length === 1 ? quoted.join() : `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`;
}

export const claimName = v.pipe(v.string(), v.minLength(1));
export const claimPath = v.union([claimName, v.pipe(v.array(claimName), v.minLength(1))]);
export const claimValue = v.union([v.string(), v.number(), v.boolean()]);
export const upstreamName = string(
  /^[A-Za-z0-9][\w.-]{0,63}$/,
  'Write a name of letters, digits, dots, hyphens, 64 characters at most, as in "orders".',
);
export const scope = string(
  /^[\x21\x23-\x5b\x5d-\x7e]+$/,
  'Write each scope as one string, without spaces and quotation marks.',
);

export const audience = v.pipe(
  v.union([claimName, v.pipe(v.array(claimName), v.minLength(1))]),
  v.description('Write the identifier of the API as the issuer knows it, compared byte for byte with aud; or a list.'),
);
export const scopes = list(scope, 'Write a list of scopes, as in ["read:orders"]: the token must have all of them.');
export const anyScope = list(scope, 'Write a list of scopes, as in ["read:orders"]: the token must have one of them.');
export const permissions = list(
  string(/./, 'Write each permission as one string.'),
  'Write a list of permissions, as in ["orders:read"]: the token must have all of them.',
);
export const acr = v.pipe(
  v.union([scope, v.pipe(v.array(scope), v.minLength(1))]),
  v.description('Write an authentication level, as in "urn:example:gold", or a list of those that are accepted.'),
);
export const maxAge = v.pipe(
  v.number(),
  v.integer(),
  v.minValue(0),
  v.description('Write whole seconds since the user signed in, 0 or more.'),
);
export const implies = v.pipe(
  v.record(scope, list(scope, 'Write a list of scopes.')),
  v.description('Write an object of scopes and the scopes they include, as in { "files:write": ["files:read"] }.'),
);
export const actor = v.pipe(
  v.union([
    v.picklist(['forbidden', 'required']),
    v.pipe(
      v.array(
        v.strictObject({
          iss: v.optional(
            v.pipe(claimName, v.description('Write the issuer of the actor. Default: the issuer of the token.')),
          ),
          sub: v.pipe(claimName, v.description('Write the sub of the actor.')),
        }),
      ),
      v.minLength(1),
    ),
  ]),
  v.description('Write "forbidden", "required", or a list of actors, as in [{ "sub": "agent-1" }].'),
);

const operations = (meaning: string) =>
  v.optional(
    v.pipe(
      v.record(
        v.string(),
        v.pipe(
          v.strictObject({
            audience: v.optional(audience),
            scopes: v.optional(scopes),
            anyScope: v.optional(anyScope),
            permissions: v.optional(permissions),
            implies: v.optional(implies),
            actor: v.optional(actor),
            acr: v.optional(acr),
            maxAge: v.optional(maxAge),
          }),
          v.description(
            'Write an object of requirements, as in { "scopes": ["files:read"] }, or {} to require only the rule.',
          ),
        ),
      ),
      v.description(meaning),
    ),
  );
export const mcp = v.pipe(
  v.strictObject({
    tools: operations('Write an object of tools, as in { "delete-*": { "scopes": ["files:write"] }, "*": {} }.'),
    resources: operations('Write an object of URIs, as in { "file:///notes/*": { "scopes": ["notes"] } }.'),
    prompts: operations('Write an object of prompts, as in { "*": {} }.'),
    trustHeaders: v.optional(
      v.pipe(
        v.boolean(),
        v.description('Write true, beside a proxy, if the upstream compares the headers with the body.'),
      ),
    ),
  }),
  v.check(({ tools, resources, prompts }) => [tools, resources, prompts].some((map) => map !== undefined)),
  v.description('Write an object with at least one of "tools", "resources" and "prompts".'),
);
