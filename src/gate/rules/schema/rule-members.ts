import * as v from 'valibot';
import { ruleAssertionSchema } from './assertion-members.ts';
import {
  acr,
  actor,
  anyScope,
  audience,
  claimPath,
  claimValue,
  implies,
  list,
  maxAge,
  mcp,
  oneOf,
  permissions,
  scopes,
  string,
  upstreamName,
} from './policy-members.ts';

/** One member of a rule: everything that the gate, its messages and its documentation know of it. */
interface RuleMember {
  /** Its description is the fix in messages and in editors. */
  readonly schema: v.GenericSchema;
  /** `policy`: part of the library policy. `token`: has an effect only if a token is validated. Default: neither. */
  readonly kind?: 'policy' | 'token';
  readonly docs: string;
  /** Describes a requirement for the console. Policy members are described there. */
  readonly explain?: (value: string | readonly string[]) => string;
}

export const hostFix =
  'Write each host as in "api.example.com" or "[2001:db8::1]:8443", or as a suffix with a wildcard and without a port, as in "*.example.com".';

const preflight = (effect: string) => oneOf(['allow', 'judge'], `${effect} By default they need a token.`);
const forward = (upstreams: string) =>
  list(v.picklist(['authorization']), `Write ["authorization"]: ${upstreams} Authorization and DPoP too.`);

export const ruleMembers = {
  id: {
    schema: string(
      /^[A-Za-z0-9][\w.:/-]{0,63}$/,
      'Write a name of letters, digits, dots, hyphens, 64 characters at most, as in "orders-write": logs and metrics show it.',
    ),
    docs: 'name in logs and metrics; `unmatched` is reserved',
  },
  hosts: {
    schema: v.optional(
      list(
        string(/^(?:\*\.[^\s*%/\\?#@:[\]]+|[^\s*%/\\?#@]+)$/, hostFix),
        'Write a list of hosts, as in ["api.example.com", "*.example.com"]; omit it for all hosts.',
      ),
    ),
    docs: 'exact, or `*.suffix`; default: all. A host without a port, or with 80 or 443, matches every port; a suffix has no port. Case, a trailing dot, spellings of an address, and Unicode or Punycode make no difference. A host that no request can have is an error',
  },
  path: {
    schema: string(
      /^\/[^?#]*$/,
      'Write a path that begins with a slash, as in "/orders/**": * is one segment, ** at the end is any remainder.',
    ),
    docs: 'segments, case-sensitive: `*` is one, `**` at the end is any remainder, including none',
  },
  methods: {
    schema: v.optional(
      list(
        string(/^[A-Z][A-Z0-9-]*$/, 'Write each method in capital letters, as in "GET".'),
        'Write a list of methods in capital letters, as in ["GET", "POST"]; omit it for all methods.',
      ),
    ),
    docs: 'in upper case, because methods are case-sensitive; `GET` covers `HEAD`; default: all',
  },
  access: {
    schema: v.optional(
      oneOf(
        ['token', 'optional', 'open', 'deny'],
        'Callers with a token; also without one; all callers; none. Default: token.',
      ),
    ),
    docs: '`token` (default), `optional`, `open`, `deny`',
  },
  issuers: {
    schema: v.optional(list(v.string(), 'Write a list with names of "issuers", as in ["staff"].')),
    kind: 'token',
    docs: 'names of accepted issuers; required if the file has several',
    explain: (names) => `issuer ${[names].flat().join(' or ')}`,
  },
  audience: {
    schema: v.optional(audience),
    kind: 'policy',
    docs: 'one of these must be in `aud`, in addition to an audience of the issuer',
  },
  scopes: {
    schema: v.optional(scopes),
    kind: 'policy',
    docs: 'the token must have all of these',
  },
  anyScope: {
    schema: v.optional(anyScope),
    kind: 'policy',
    docs: 'the token must have one of these',
  },
  permissions: {
    schema: v.optional(permissions),
    kind: 'policy',
    docs: 'the token must have all of these in its permissions claim',
  },
  implies: {
    schema: v.optional(implies),
    kind: 'policy',
    docs: 'scopes that a granted scope includes, transitively: `{ "files:write": ["files:read"] }`',
  },
  actor: {
    schema: v.optional(actor),
    kind: 'policy',
    docs: 'requirement on the outermost `act` of the token: `forbidden`, `required`, or a list such as `[{ "sub": "agent-1" }]`',
  },
  acr: {
    schema: v.optional(acr),
    kind: 'policy',
    docs: 'accepted authentication levels (RFC 9470)',
  },
  maxAge: {
    schema: v.optional(maxAge),
    kind: 'policy',
    docs: 'maximum seconds since the user signed in (RFC 9470)',
  },
  claims: {
    schema: v.optional(
      list(
        v.pipe(
          v.strictObject({
            claim: v.pipe(claimPath, v.description('Write the name of a claim, or the path to it.')),
            equals: v.optional(v.pipe(claimValue, v.description('Write a string, number or boolean, or "{name}".'))),
            contains: v.optional(v.pipe(claimValue, v.description('Write an item that the array must contain.'))),
            containsAny: v.optional(list(claimValue, 'Write a list of items: the array must contain one of them.')),
          }),
          v.check(
            ({ equals, contains, containsAny }) =>
              [equals, contains, containsAny].filter((each) => each !== undefined).length === 1,
          ),
          v.description('Write an object with "claim" and one of "equals", "contains" and "containsAny".'),
        ),
        'Write a list of conditions, as in [{ "claim": "tenant", "equals": "{tenant}" }]: all must hold.',
      ),
    ),
    kind: 'token',
    docs: '[conditions on claims](#conditions), all of which must hold',
  },
  mcp: {
    schema: v.optional(mcp),
    kind: 'token',
    docs: 'requirements by tool, resource and prompt of an [MCP server](../agents.md)',
  },
  assertion: {
    schema: ruleAssertionSchema,
    kind: 'token',
    docs: '`{ "audience", "bind" }` of the [signed identity](identity.md#signed-identity) of this rule, or `"off"`',
  },
  dpop: {
    schema: v.optional(
      oneOf(['allowed', 'required', 'off'], 'Mode of DPoP. Default: the mode of the gate’s settings.'),
    ),
    kind: 'token',
    docs: '`allowed`, `required`, `off`; default: the gate’s settings',
    explain: (mode) => `DPoP ${String(mode)}`,
  },
  mode: {
    schema: v.optional(
      oneOf(['enforce', 'report'], 'With report, refusals are only logged and counted. Default: enforce.'),
    ),
    docs: '`report` refuses no request: [report mode](start.md#in-front-of-an-api-that-is-in-use)',
  },
  encodedSlash: {
    schema: v.optional(oneOf(['allow'], 'Accepts an encoded slash inside a segment. Default: such a path is refused.')),
    docs: '`allow` accepts `%2F` inside a segment, for package registries. It never separates segments',
  },
  preflight: {
    schema: v.optional(preflight('With allow, CORS preflights pass without a token.')),
    docs: '`allow` lets CORS preflights pass without a token; also a top-level member, for all rules',
  },
  forward: {
    schema: v.optional(forward('the upstream gets')),
    docs: '`["authorization"]`: the upstream gets `Authorization` and `DPoP` too (with `--upstream`; otherwise your proxy decides)',
  },
  upstream: {
    schema: v.optional(upstreamName),
    docs: 'name of one of the `upstreams` (as the proxy); default: `UPSTREAM`',
  },
  stripPrefix: {
    schema: v.optional(
      string(
        /^(?:\/[^/?#*{}]+)+$/,
        'Write the first segments of the path, as in "/orders": the upstream gets the path without them.',
      ),
    ),
    docs: 'first segments of `path`, which the upstream gets in `X-Forwarded-Prefix` instead (as the proxy)',
  },
  cors: {
    schema: v.optional(
      v.pipe(
        v.strictObject({
          origins: list(
            string(/^(?:\*|https?:\/\/[^\s/?#@*]+)$/, 'Write each origin as in "https://app.example", or only "*".'),
            'Write a list of origins, as in ["https://app.example"].',
          ),
          credentials: v.optional(
            v.pipe(v.boolean(), v.description('Write true if browsers may send cookies. Default: false.')),
          ),
        }),
        v.check(({ origins, credentials }) => !origins.includes('*') || (origins.length === 1 && credentials !== true)),
        v.description('Write an object with "origins"; with "credentials": true, without "*".'),
      ),
    ),
    docs: '[origins of browsers](#browsers) for this rule; default: `CORS_ORIGINS`',
  },
} as const satisfies Readonly<Record<string, RuleMember>>;

type RuleMembers = typeof ruleMembers;
type MemberName = keyof RuleMembers;
type NamesOfKind<Kind> = { [Name in MemberName]: RuleMembers[Name] extends { kind: Kind } ? Name : never }[MemberName];

export const policyMembers = namesOfKind('policy');
/** Names of the members that have an effect only if a token is validated. */
export const tokenMembers = [...policyMembers, ...namesOfKind('token')];

function namesOfKind<Kind extends 'policy' | 'token'>(kind: Kind): readonly NamesOfKind<Kind>[] {
  const members: readonly (readonly [string, RuleMember])[] = Object.entries(ruleMembers);
  return members.filter(([, member]) => member.kind === kind).map(([name]) => name as NamesOfKind<Kind>); // filtered by kind
}

export const ruleSchema = v.pipe(
  v.strictObject(
    Object.fromEntries(Object.entries(ruleMembers).map(([name, { schema }]) => [name, schema])) as {
      readonly [Name in MemberName]: RuleMembers[Name]['schema'];
    }, // each member's schema under its name
  ),
  v.description('Write an object with at least "id" and "path".'),
);

/** Top-level members that are defaults of rules. */
export const ruleDefaults = {
  preflight: v.optional(preflight('For all rules without their own.')),
  forward: v.optional(forward('upstreams get')),
};
