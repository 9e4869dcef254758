import * as v from 'valibot';

export const string = (pattern: RegExp, description: string) =>
  v.pipe(v.string(), v.regex(pattern), v.description(description));
export const list = <Item extends v.GenericSchema>(item: Item, description: string) =>
  v.pipe(v.array(item), v.minLength(1), v.description(description));
export const text = (description: string) => v.pipe(v.string(), v.minLength(1), v.description(description));
export const within = (least: number, most: number, description: string) =>
  v.pipe(v.number(), v.minValue(least), v.maxValue(most), v.description(description));
export const oneOf = <const Options extends readonly string[]>(options: Options, meaning: string) =>
  v.pipe(v.picklist(options), v.description(`Write ${formatChoice(options)}. ${meaning}`));
export const flag = (description: string) => v.pipe(v.boolean(), v.description(description));
export const described = <Schema extends v.GenericSchema>(schema: Schema, description: string) =>
  v.pipe(schema, v.description<v.InferOutput<Schema>, string>(description));

export const optional = <const Entries extends v.ObjectEntries>(entries: Entries) =>
  v.partial(v.strictObject(entries)).entries;

function formatChoice(options: readonly string[]): string {
  const quoted = options.map((option) => `"${option}"`);
  return quoted.length === 1 ? quoted.join() : `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`;
}

export const claimName = v.pipe(v.string(), v.minLength(1));
const claimNames = v.pipe(v.array(claimName), v.minLength(1));
export const claimPath = v.union([claimName, claimNames]);
export const scope = string(
  /^[\x21\x23-\x5b\x5d-\x7e]+$/,
  'Write each scope as one string, without spaces and quotation marks.',
);

/** Members that are part of the policy of the library. */
export const policyMembers = {
  audience: {
    schema: described(
      claimPath,
      'Write the identifier of the API as the issuer knows it, compared byte for byte with aud; or a list.',
    ),
    docs: 'one of these must be in `aud`, in addition to an audience of the issuer',
    unrecorded: 'aud',
  },
  scopes: {
    schema: list(scope, 'Write a list of scopes, as in ["read:orders"]: the token must have all of them.'),
    docs: 'the token must have all of these',
  },
  anyScope: {
    schema: list(scope, 'Write a list of scopes, as in ["read:orders"]: the token must have one of them.'),
    docs: 'the token must have one of these',
  },
  permissions: {
    schema: list(
      string(/./, 'Write each permission as one string.'),
      'Write a list of permissions, as in ["orders:read"]: the token must have all of them.',
    ),
    docs: 'the token must have all of these in its permissions claim',
    unrecorded: 'permissions',
  },
  implies: {
    schema: described(
      v.record(scope, list(scope, 'Write a list of scopes.')),
      'Write an object of scopes and the scopes they include, as in { "files:write": ["files:read"] }.',
    ),
    docs: 'scopes that a granted scope includes, transitively: `{ "files:write": ["files:read"] }`',
  },
  actor: {
    schema: described(
      v.union([
        v.picklist(['forbidden', 'required']),
        v.pipe(
          v.array(
            v.strictObject({
              iss: v.optional(described(claimName, 'Write the issuer of the actor. Default: the issuer of the token.')),
              sub: described(claimName, 'Write the sub of the actor.'),
            }),
          ),
          v.minLength(1),
        ),
      ]),
      'Write "forbidden", "required", or a list of actors, as in [{ "sub": "agent-1" }].',
    ),
    docs: 'requirement on the outermost `act` of the token: `forbidden`, `required`, or a list such as `[{ "sub": "agent-1" }]`',
  },
  acr: {
    schema: described(
      v.union([scope, v.pipe(v.array(scope), v.minLength(1))]),
      'Write an authentication level, as in "urn:example:gold", or a list of those that are accepted.',
    ),
    docs: 'accepted authentication levels (RFC 9470)',
    unrecorded: 'acr',
  },
  maxAge: {
    schema: v.pipe(
      v.number(),
      v.integer(),
      v.minValue(0),
      v.description('Write whole seconds since the user signed in, 0 or more.'),
    ),
    docs: 'maximum seconds since the user signed in (RFC 9470)',
    unrecorded: 'auth_time',
  },
} as const;

type Members = Readonly<Record<string, { readonly schema: v.GenericSchema }>>;
type SchemasOf<All extends Members> = { readonly [Name in keyof All]: All[Name]['schema'] };

export function schemasOf<All extends Members>(members: All): SchemasOf<All> {
  return Object.fromEntries(Object.entries(members).map(([name, { schema }]) => [name, schema])) as SchemasOf<All>; // each under its name
}

const operation = described(
  v.strictObject(optional(schemasOf(policyMembers))),
  'Write an object of requirements, as in { "scopes": ["files:read"] }, or {} to require only the rule.',
);
const operations = (description: string) => described(v.record(v.string(), operation), description);

export const mcp = v.pipe(
  v.strictObject(
    optional({
      tools: operations('Write an object of tools, as in { "delete-*": { "scopes": ["files:write"] }, "*": {} }.'),
      resources: operations('Write an object of URIs, as in { "file:///notes/*": { "scopes": ["notes"] } }.'),
      prompts: operations('Write an object of prompts, as in { "*": {} }.'),
      trustHeaders: flag('Write true, beside a proxy, if the upstream compares the headers with the body.'),
    }),
  ),
  v.check(({ tools, resources, prompts }) => [tools, resources, prompts].some((map) => map !== undefined)),
  v.description('Write an object with at least one of "tools", "resources" and "prompts".'),
);
