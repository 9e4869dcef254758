import * as v from 'valibot';
import * as forms from './policy-members.ts';

/** One member of a rule: everything that the gate, its messages and its documentation know of it. */
export interface RuleMember {
  /** Its description is the fix in messages and in editors. */
  readonly schema: v.GenericSchema;
  readonly docs: string;
  /** Present if the member has an effect only if a token is validated. Members of a policy are such members too. */
  readonly needsToken?: true;
  /** Describes a requirement for the console, which describes policies itself. */
  readonly explain?: (value: string | readonly string[]) => string;
  /** The fact that the member depends on, if the audit trail does not record it. */
  readonly unrecorded?: string;
}

export const hostFix =
  'Write each host as in "api.example.com" or "[2001:db8::1]:8443", or as a suffix with a wildcard and without a port, as in "*.example.com".';

export const nameOfUpstream = forms.string(
  /^[A-Za-z0-9][\w.-]{0,63}$/,
  'Write a name of letters, digits, dots, hyphens, 64 characters at most, as in "orders".',
);

/** Members that bind an assertion, in a rule or for all rules. */
export const assertionTarget = forms.optional({
  audience: forms.text('Write the identifier of the upstream, as in "https://orders.internal/": it becomes aud.'),
  bind: forms.flag('Write true to bind each assertion to its request by htm and htu. Default: false.'),
});

const preflight = (effect: string) => forms.oneOf(['allow', 'judge'], `${effect} By default they need a token.`);
const forward = (upstreams: string) =>
  forms.list(v.picklist(['authorization']), `Write ["authorization"]: ${upstreams} Authorization and DPoP too.`);

export const ruleMembers = {
  id: {
    schema: forms.string(
      /^[A-Za-z0-9][\w.:/-]{0,63}$/,
      'Write a name of letters, digits, dots, hyphens, 64 characters at most, as in "orders-write": logs and metrics show it.',
    ),
    docs: 'name in logs and metrics; `unmatched` is reserved',
  },
  hosts: {
    schema: forms.list(
      forms.string(/^(?:\*\.[^\s*%/\\?#@:[\]]+|[^\s*%/\\?#@]+)$/, hostFix),
      'Write a list of hosts, as in ["api.example.com", "*.example.com"]; omit it for all hosts.',
    ),
    docs: 'exact, or `*.suffix`; default: all. A host without a port, or with 80 or 443, matches every port; a suffix has no port. Case, a trailing dot, spellings of an address, and Unicode or Punycode make no difference. A host that no request can have is an error',
  },
  path: {
    schema: forms.string(
      /^\/[^?#]*$/,
      'Write a path that begins with a slash, as in "/orders/**": * is one segment, ** at the end is any remainder.',
    ),
    docs: 'segments, case-sensitive: `*` is one, `**` at the end is any remainder, including none',
  },
  methods: {
    schema: forms.list(
      forms.string(/^[A-Z][A-Z0-9-]*$/, 'Write each method in capital letters, as in "GET".'),
      'Write a list of methods in capital letters, as in ["GET", "POST"]; omit it for all methods.',
    ),
    docs: 'in upper case, because methods are case-sensitive; `GET` covers `HEAD`; default: all',
  },
  access: {
    schema: forms.oneOf(
      ['token', 'optional', 'open', 'deny'],
      'Callers with a token; also without one; all callers; none. Default: token.',
    ),
    docs: '`token` (default), `optional`, `open`, `deny`',
  },
  issuers: {
    schema: forms.list(v.string(), 'Write a list with names of "issuers", as in ["staff"].'),
    needsToken: true,
    docs: 'names of accepted issuers; required if the file has several',
    explain: (names) => `issuer ${[names].flat().join(' or ')}`,
  },
  ...forms.policyMembers,
  when: {
    schema: forms.string(
      /\S/,
      'Write a condition in CEL, as in "token.tenant == path.tenant && \'otp\' in token.amr".',
    ),
    needsToken: true,
    docs: '[condition in CEL](#conditions-in-cel) on the token, the path, the request and the time',
    explain: (text) => `condition ${[text].flat().join()}`,
  },
  mcp: {
    schema: forms.mcp,
    needsToken: true,
    docs: 'requirements by tool, resource and prompt of an [MCP server](../mcp.md)',
    unrecorded: 'operation',
  },
  assertion: {
    schema: forms.described(
      v.union([v.literal('off'), v.strictObject(assertionTarget)]),
      'Write { "audience": "https://orders.internal/" }, or "off" to send no assertion.',
    ),
    needsToken: true,
    docs: '`{ "audience", "bind" }` of the [signed identity](identity.md#signed-identity) of this rule, or `"off"`',
  },
  dpop: {
    schema: forms.oneOf(['allowed', 'required', 'off'], 'Mode of DPoP. Default: the mode of the gate’s settings.'),
    needsToken: true,
    docs: '`allowed`, `required`, `off`; default: the gate’s settings',
    explain: (mode) => `DPoP ${String(mode)}`,
  },
  mode: {
    schema: forms.oneOf(['enforce', 'report'], 'With report, refusals are only logged and counted. Default: enforce.'),
    docs: '`report` refuses no request: [report mode](../gate.md#in-front-of-an-api-that-is-in-use)',
  },
  streams: {
    schema: forms.oneOf(
      ['end-with-token', 'end-with-revocation', 'outlive-token'],
      'End of tunnels and event streams that a token opened. Default: end-with-token.',
    ),
    needsToken: true,
    docs: '[open streams](proxies.md#open-streams) end with their token (`end-with-token`, the default), only with its revocation (`end-with-revocation`), or not with it (`outlive-token`) (as the proxy)',
  },
  webSocketToken: {
    schema: forms.oneOf(['protocol'], 'Accepts the token of a WebSocket as the subprotocol after "bearer".'),
    needsToken: true,
    docs: '`protocol` accepts the [token of a browser’s WebSocket](proxies.md#websockets-of-browsers) as a subprotocol (as the proxy)',
  },
  encodedSlash: {
    schema: forms.oneOf(['allow'], 'Accepts an encoded slash inside a segment. Default: such a path is refused.'),
    docs: '`allow` accepts `%2F` inside a segment, for package registries. It never separates segments',
  },
  preflight: {
    schema: preflight('With allow, CORS preflights pass without a token.'),
    docs: '`allow` lets CORS preflights pass without a token; also a top-level member, for all rules',
  },
  forward: {
    schema: forward('the upstream gets'),
    docs: '`["authorization"]`: the upstream gets `Authorization` and `DPoP` too (with `--upstream`; otherwise your proxy decides)',
  },
  exchange: {
    schema: nameOfUpstream,
    needsToken: true,
    docs: 'name of one of the `exchanges`: the upstream gets [its own token](identity.md#token-exchange) instead of the caller’s',
    explain: (name) => `exchange ${String(name)}`,
    unrecorded: 'exchange',
  },
  upstream: { schema: nameOfUpstream, docs: 'name of one of the `upstreams` (as the proxy); default: `UPSTREAM`' },
  stripPrefix: {
    schema: forms.string(
      /^(?:\/[^/?#*{}]+)+$/,
      'Write the first segments of the path, as in "/orders": the upstream gets the path without them.',
    ),
    docs: 'first segments of `path`, which the upstream gets in `X-Forwarded-Prefix` instead (as the proxy)',
  },
  cors: {
    schema: v.pipe(
      v.strictObject({
        origins: forms.list(
          forms.string(
            /^(?:\*|https?:\/\/[^\s/?#@*]+)$/,
            'Write each origin as in "https://app.example", or only "*".',
          ),
          'Write a list of origins, as in ["https://app.example"].',
        ),
        credentials: v.optional(forms.flag('Write true if browsers may send cookies. Default: false.')),
      }),
      v.check(({ origins, credentials }) => !origins.includes('*') || (origins.length === 1 && credentials !== true)),
      v.description('Write an object with "origins"; with "credentials": true, without "*".'),
    ),
    docs: '[origins of browsers](#browsers) for this rule; default: `CORS_ORIGINS`',
  },
} as const satisfies Readonly<Record<string, RuleMember>>;

type MemberName = keyof typeof ruleMembers;

/** Names of the members that have an effect only if a token is validated. */
export const tokenMembers = (Object.entries(ruleMembers) as readonly [MemberName, RuleMember][]) // keys of this object
  .filter(([name, { needsToken }]) => needsToken === true || Object.hasOwn(forms.policyMembers, name))
  .map(([name]) => name);

const { id, path } = ruleMembers;

export const ruleSchema = forms.described(
  v.strictObject({ ...forms.optional(forms.schemasOf(ruleMembers)), id: id.schema, path: path.schema }),
  'Write an object with at least "id" and "path".',
);

/** Top-level members that are defaults of rules. */
export const ruleDefaults = forms.optional({
  preflight: preflight('For all rules without their own.'),
  forward: forward('upstreams get'),
});
