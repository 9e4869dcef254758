import * as v from 'valibot';
import { algorithms } from '../../jose/algorithms.ts';

/** What a value may be, told to editors and to whoever wrote it wrong. */
const text = (pattern: RegExp, description: string) => v.pipe(v.string(), v.regex(pattern), v.description(description));

const scope = text(
  /^[\x21\x23-\x5b\x5d-\x7e]+$/,
  'Write each scope as a text of its own, without spaces and quotation marks.',
);
const list = <Item extends v.GenericSchema>(item: Item, description: string) =>
  v.pipe(v.array(item), v.minLength(1), v.description(description));
const oneOf = <const Options extends readonly string[]>(options: Options, meaning: string) =>
  v.pipe(v.picklist(options), v.description(`Write ${formatChoice(options)}. ${meaning}`));

function formatChoice(options: readonly string[]): string {
  const quoted = options.map((option) => `"${option}"`);
  return quoted.length === 1 ? quoted.join() : `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`;
}

const claimName = v.pipe(v.string(), v.minLength(1));

const audience = v.pipe(
  v.union([v.pipe(v.string(), v.minLength(1)), v.pipe(v.array(v.pipe(v.string(), v.minLength(1))), v.minLength(1))]),
  v.description('Write the identifier of the API as the issuer knows it, compared byte for byte with aud; or a list.'),
);

const issuer = v.pipe(
  v.strictObject({
    issuer: text(/\S/, 'Write the issuer as iss has it, as in "https://id.example/realms/main", or its domain.'),
    audience: v.optional(audience),
    algorithms: v.optional(
      list(
        v.picklist([...algorithms.keys()]),
        `Write a list with any of ${[...algorithms.keys()].join(', ')}. Default: RS256.`,
      ),
    ),
    clockTolerance: v.optional(
      v.pipe(
        v.number(),
        v.minValue(0),
        v.maxValue(60),
        v.description('Write seconds by which clocks may differ, 0 to 60. Default: 5.'),
      ),
    ),
    subject: v.optional(oneOf(['required', 'optional'], 'Whether a token must have sub. Default: required.')),
    permissionsClaim: v.optional(
      v.pipe(
        v.union([claimName, v.pipe(v.array(claimName), v.minLength(1))]),
        v.description(
          'Write the name of the claim that holds permissions, or the path to it, as in ["realm_access", "roles"]. Default: permissions.',
        ),
      ),
    ),
    scopeClaim: v.optional(text(/./, 'Write the name of the claim that holds scopes, as in "scp". Default: scope.')),
    clientIds: v.optional(
      list(
        claimName,
        'Write a list of clients whose tokens are taken, as in ["shop"]: client_id, or azp, is one of them.',
      ),
    ),
    jwksUri: v.optional(text(/^https?:\/\//, 'Write the URL of the keys, if the issuer has no discovery document.')),
    insecure: v.optional(
      v.pipe(v.boolean(), v.description('Write true for an issuer that is reached over plain http, and its keys too.')),
    ),
    profile: v.optional(oneOf(['rfc9068'], 'Tokens must fit RFC 9068 in full.')),
  }),
  v.description('Write an object with "issuer" and "audience".'),
);

/** Form of a host of a rule. */
export const hostFix =
  'Write each host as in "api.example.com" or "[2001:db8::1]:8443", or as a suffix with a wildcard and without a port, as in "*.example.com".';

const ruleMembers = {
  id: text(
    /^[A-Za-z0-9][\w.:/-]{0,63}$/,
    'Write a name of letters, digits, dots, hyphens, 64 characters at most, as in "orders-write": logs and metrics show it.',
  ),
  hosts: v.optional(
    list(
      text(/^(?:\*\.[^\s*%/\\?#@:[\]]+|[^\s*%/\\?#@]+)$/, hostFix),
      'Write a list of hosts, as in ["api.example.com", "*.example.com"]; leave it out for all hosts.',
    ),
  ),
  path: text(
    /^\/[^?#]*$/,
    'Write a path that begins with a slash, as in "/orders/**": * is one segment, ** at the end is any rest.',
  ),
  methods: v.optional(
    list(
      text(/^[A-Z][A-Z0-9-]*$/, 'Write each method in capital letters, as in "GET".'),
      'Write a list of methods in capital letters, as in ["GET", "POST"]; leave it out for all methods.',
    ),
  ),
  access: v.optional(
    oneOf(
      ['token', 'optional', 'open', 'deny'],
      'Who is let in: with a token, also without one, everybody, nobody. Default: token.',
    ),
  ),
  issuers: v.optional(list(v.string(), 'Write a list with names of "issuers", as in ["staff"].')),
  audience: v.optional(audience),
  scopes: v.optional(list(scope, 'Write a list of scopes, as in ["read:orders"]: the token must have all of them.')),
  anyScope: v.optional(list(scope, 'Write a list of scopes, as in ["read:orders"]: the token must have one of them.')),
  permissions: v.optional(
    list(
      text(/./, 'Write each permission as a text of its own.'),
      'Write a list of permissions, as in ["orders:read"]: the token must have all of them.',
    ),
  ),
  acr: v.optional(
    v.pipe(
      v.union([scope, v.pipe(v.array(scope), v.minLength(1))]),
      v.description('Write an authentication level, as in "urn:example:gold", or a list of those that are accepted.'),
    ),
  ),
  maxAge: v.optional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(0),
      v.description('Write whole seconds since the user signed in, 0 or more.'),
    ),
  ),
  dpop: v.optional(
    oneOf(['allowed', 'required', 'off'], 'Whether DPoP is accepted. Default: what the gate is set to.'),
  ),
  mode: v.optional(
    oneOf(
      ['enforce', 'report'],
      'With report nobody is refused: what would be is logged and counted. Default: enforce.',
    ),
  ),
  encodedSlash: v.optional(
    oneOf(['allow'], 'An encoded slash may stand inside a segment. Default: such a path is refused.'),
  ),
  preflight: v.optional(oneOf(['allow', 'judge'], 'Whether CORS preflights pass without a token. Default: judge.')),
  forward: v.optional(
    list(v.picklist(['authorization']), 'Write ["authorization"]: the upstream gets Authorization and DPoP too.'),
  ),
};

/** The form of a rules file; what its parts say of each other is checked afterwards. */
export const rulesSchema = v.pipe(
  v.strictObject({
    $schema: v.optional(v.pipe(v.string(), v.description('Where editors find this schema.'))),
    issuers: v.optional(
      v.pipe(
        v.record(v.string(), issuer),
        v.description('Write an object with a member for each issuer: its name here, and what it is.'),
      ),
    ),
    rules: list(
      v.pipe(v.strictObject(ruleMembers), v.description('Write an object with at least "id" and "path".')),
      'Write a list of rules: at least one.',
    ),
    identity: v.optional(
      v.pipe(
        v.record(
          text(
            /^[A-Za-z0-9][A-Za-z0-9-]*$/,
            'Write names of headers with letters, digits and hyphens, as in "X-Auth-Subject".',
          ),
          text(/./, 'Write the name of a claim, as in "sub".'),
        ),
        v.description(
          'Write an object of headers and claims, as in { "X-Auth-Subject": "sub" }. Default: X-Auth-Subject, -Client, -Scope, -Issuer.',
        ),
      ),
    ),
    resource: v.optional(
      text(
        /^https?:\/\/[^/?#@\s]+$/,
        'Write the origin under which the metadata of RFC 9728 is served, as in "https://api.example.com".',
      ),
    ),
    preflight: v.optional(oneOf(['allow', 'judge'], 'For all rules that do not say otherwise. Default: judge.')),
    forward: v.optional(
      list(v.picklist(['authorization']), 'Write ["authorization"]: upstreams get Authorization and DPoP too.'),
    ),
  }),
  v.title('Rules of the Portcullis gate'),
  v.description('Write an object with "rules".'),
);

/** A rules file, as it was written. */
export type RulesDocument = v.InferOutput<typeof rulesSchema>;
export type RuleEntry = RulesDocument['rules'][number];
export type IssuerEntry = NonNullable<RulesDocument['issuers']>[string];
