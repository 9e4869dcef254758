import { defaultAudience, defaultIdpPort } from '../../dev/provider/defaults.ts';

/** A flag of one command, in addition to `--help`. */
export interface FlagRow {
  /** Placeholder of the value; `undefined` for a switch. */
  readonly value?: string;
  /** Another spelling. */
  readonly alias?: string;
  /** True for a flag that may be repeated. */
  readonly isRepeated?: true;
  readonly meaning: string;
}

export interface CommandRow {
  readonly summary: string;
  /** Arguments, one line for each form of the command. Default: `[flags]`. */
  readonly forms?: readonly string[];
  /** Input and output, as sentences. */
  readonly reads: string;
  readonly flags: Readonly<Record<string, FlagRow>>;
  /** Consumer whose settings are flags of the command and are listed first. Default: settings are not flags. */
  readonly settings?: 'serve' | 'gate' | 'all';
  readonly examples: readonly string[];
}

const order =
  'A flag has precedence over a variable, a variable over the file of --settings, and the file over a default.';

/** Every command, in the order of the help. */
export const commandTable = {
  serve: {
    summary: 'Run the service.',
    reads: `It reads settings from flags, environment variables and the file of --settings. ${order} \`portcullis config\` prints the settings in force.`,
    flags: {},
    settings: 'serve',
    examples: [
      'portcullis serve --domain tenant.eu.auth0.com --audience https://api.example/',
      'portcullis serve --issuer https://id.example/realms/main --audience urn:api',
      'IDP_DOMAIN=tenant.eu.auth0.com IDP_AUDIENCE=urn:api portcullis serve --port 0',
    ],
  },
  dev: {
    summary: 'Run a local identity provider and the service; for development.',
    reads: 'Every setting without a flag is read from the environment, as `portcullis serve` reads it.',
    flags: {
      port: { value: 'PORT', meaning: 'Port of the service; 0 picks a free one (default: PORT, or 8000).' },
      'idp-port': { value: 'PORT', meaning: `Port of the provider; 0 picks a free one (default: ${defaultIdpPort}).` },
      variant: { value: 'a|b', meaning: 'Reference behaviour (default: VARIANT, or a).' },
      audience: { value: 'TEXT', meaning: `Identifier of the API (default: ${defaultAudience}).` },
      upstream: {
        value: 'URL',
        meaning: 'The gate before your server instead of the service: http://host:port or unix:/path.',
      },
      rules: { value: 'FILE', meaning: 'The gate with these rules, which name the provider as an issuer.' },
      exchange: {
        value: 'AUDIENCE',
        meaning: 'With --upstream: your server gets its own token for this audience, by token exchange.',
      },
      'only-provider': { meaning: 'Only the provider, for your server.' },
    },
    examples: [
      'portcullis dev',
      'portcullis dev --upstream http://127.0.0.1:3000 --exchange urn:orders',
      'portcullis dev --only-provider --audience https://api.example.com/',
    ],
  },
  token: {
    summary: 'Print an access token of the running local provider.',
    reads: 'It requests the token from the provider that `portcullis dev` runs.',
    flags: {
      scope: { value: '"a b"', meaning: 'Scopes of the token. Without the flag there are none.' },
      expired: { meaning: 'Expired an hour ago.' },
      'not-yet-valid': { meaning: 'Valid in an hour.' },
      sub: { value: 'TEXT', meaning: 'Another subject.' },
      actor: { value: 'TEXT', meaning: 'Agent that acts for the subject (act, RFC 8693).' },
      permissions: { value: '"a b"', alias: 'permission', meaning: 'Permissions of the token.' },
      acr: { value: 'TEXT', meaning: 'Authentication level.' },
      'auth-time': { value: 'N', meaning: 'The user signed in N seconds ago.' },
      claim: {
        value: 'NAME=VALUE',
        isRepeated: true,
        meaning: 'Another claim. A VALUE that is JSON is read as JSON; null omits the claim.',
      },
      audience: { value: 'TEXT', meaning: 'Another API.' },
      issuer: { value: 'TEXT', meaning: 'In the name of another issuer.' },
      'unknown-key': { meaning: 'Signed with a key that is not published.' },
      logout: { meaning: 'A logout token instead, for --sub, or for the session of --claim sid=ID.' },
      idp: { value: 'URL', meaning: 'The provider, if several run (default: the latest; a note says which).' },
      dpop: { meaning: 'Bound to a new key. Also prints a DPoP proof, and a curl command that uses both once.' },
      url: { value: 'URL', meaning: 'URL of the proof (default: /api/private of the running service).' },
      method: { value: 'METHOD', meaning: 'Method of the proof (default: GET).' },
      nonce: { value: 'TEXT', meaning: 'The DPoP-Nonce that the service has sent.' },
    },
    examples: [
      'portcullis token --scope read:messages',
      'portcullis token --expired | portcullis explain',
      'sh -c "$(portcullis token --dpop | tail -n 1)"',
    ],
  },
  explain: {
    summary: 'Explain a refused request, check by check, or a reason.',
    forms: ['[flags] < INPUT', 'NAME'],
    reads:
      'It reads a token, a header line, header lines, a curl command, a HAR, a request, a response or a log line from standard input, and searches any other text for Authorization and DPoP. It shows every check. Nothing in the input is run. NAME is a reason, a cause, a check or a problem of doctor. Settings of the service are flags too.',
    flags: {
      file: { value: 'FILE', meaning: 'Input file, instead of standard input. With --id: the log.' },
      entry: { value: 'N', meaning: 'Entry of a HAR (default: the first request with a 401 or 403).' },
      issuer: { value: 'URL', meaning: 'Issuer, instead of settings. It needs --audience.' },
      audience: { value: 'TEXT', isRepeated: true, meaning: 'Audience, instead of settings.' },
      server: { value: 'URL', meaning: 'Issuer and audience from the metadata that this service publishes.' },
      id: {
        value: 'ID',
        meaning:
          'X-Request-Id of a recent refusal of the running dev; with --admin or --console-key-file, of another service; with --file, of a line of the log.',
      },
      admin: { value: 'URL', meaning: 'Admin listener of the service that --id is of (default: from the settings).' },
      'console-key-file': { value: 'FILE', meaning: 'Key of the console of that service (default: CONSOLE_KEY_FILE).' },
      rules: {
        value: 'FILE',
        meaning: 'Rules of a gate, instead of settings: evaluates like the gate, and names the rule.',
      },
      jwks: { value: 'FILE', meaning: 'Keys of the issuer. Nothing is fetched.' },
      offline: { meaning: 'Fetches nothing.' },
      at: { value: 'TIME', meaning: 'Evaluates for this time: ISO 8601, or seconds since 1970.' },
      method: { value: 'METHOD', meaning: 'Method of the request, if the input has none (default: GET).' },
      url: { value: 'URL', meaning: 'URL of the request. Without input, the request has no token.' },
      scope: { value: '"a b"', isRepeated: true, meaning: 'Scopes that the route requires.' },
      permission: {
        ...{ value: '"a b"', alias: 'permissions', isRepeated: true },
        meaning: 'Permissions that the route requires.',
      },
      show: { value: 'CLAIM', isRepeated: true, meaning: 'Also shows this claim, which may be personal.' },
      expect: { value: 'REASON', meaning: 'Exit status 0 if this is the reason (or admitted), otherwise 1.' },
      json: { meaning: 'Prints JSON.' },
    },
    settings: 'all',
    examples: [
      'portcullis token | portcullis explain --scope read:messages',
      'portcullis explain --rules rules.yaml --url https://api.example/orders',
      'portcullis explain audience_slash',
    ],
  },
  watch: {
    summary: 'Print the refusals of a running service as they happen.',
    reads:
      'It reads the decisions of the running `portcullis dev`, or of a service with CONSOLE=on, from the admin listener on this host. Each refusal has its reason, the expected and seen value, and the fix.',
    flags: {
      admin: { value: 'URL', meaning: 'Admin listener of the service (default: of the running dev).' },
      'console-key-file': { value: 'FILE', meaning: 'Key of the console of that service (default: CONSOLE_KEY_FILE).' },
      json: { meaning: 'Prints a line of JSON for each refusal.' },
    },
    examples: [
      'portcullis watch',
      'portcullis watch --admin http://127.0.0.1:9464 --console-key-file ./key',
      'portcullis watch --json | jq -r .reason',
    ],
  },
  doctor: {
    summary: 'Check the provider, the network and the running service.',
    reads:
      'It checks the provider, the network and the running service. It reads the settings of serve or gate, which are flags too; without any, it checks a running `portcullis dev`.',
    flags: {
      'from-outside': { value: 'URL', meaning: 'URL of the clients: an origin, or a route that requires a token.' },
      peer: { value: 'URL', isRepeated: true, meaning: 'Address of one instance; repeat it for each.' },
      'token-file': { value: 'FILE', meaning: 'Access token, for the checks of revocation and dpop.' },
      'dpop-key-file': { value: 'FILE', meaning: 'Key that this token is bound to, in PEM or as JWK.' },
      'client-cert': { value: 'FILE', meaning: 'Client certificate and key in PEM, for URLs that require them.' },
      only: {
        value: 'a,b',
        meaning: 'Runs only these checks: provider, tls, clock, url, redis, revocation, rules, dpop.',
      },
      timeout: { value: 'SECONDS', meaning: 'Limit of each request (default: 5).' },
      json: { meaning: 'Prints JSON.' },
    },
    settings: 'all',
    examples: [
      'portcullis doctor',
      'portcullis doctor --from-outside https://api.example.com',
      'portcullis doctor --only provider,clock --json',
    ],
  },
  gate: {
    summary: 'Authorize requests for other servers, next to a proxy or as the proxy.',
    reads: `It reads rules (--rules), or one issuer and audience for all requests. With --upstream it is the proxy. It reads settings from flags, environment variables and the file of --settings. ${order}`,
    flags: {},
    settings: 'gate',
    examples: [
      'portcullis gate --rules rules.yaml',
      'portcullis gate --rules rules.yaml --upstream http://127.0.0.1:3000',
      'portcullis gate --issuer https://id.example/ --audience urn:api --scope read',
    ],
  },
  rules: {
    summary: 'Check a rules file of the gate, or run sample or recorded requests against it.',
    forms: ['check FILE', 'test FILE CASES', 'which FILE METHOD URL', 'replay AUDIT FILE'],
    reads:
      'FILE is a file, or a folder of rules files, in JSON or YAML. `check` lists every problem with its line, and warns of rules that are probably not meant. `test` runs sample requests against expected decisions. `which` prints the rule of a request, and the runners-up. `replay` reads an audit trail (a file, or - for standard input), and prints which of its decisions the rules would change. Exit status: 0 without problems, even with warnings; 1 for problems, another decision, or a request without a rule; 66 for an unreadable trail; 69 if a recorded decision depends on a fact that is not recorded; 78 for rules that replay cannot load.',
    flags: {
      since: { value: 'TIME', meaning: 'For replay: only decisions at or after this time.' },
      until: { value: 'TIME', meaning: 'For replay: only decisions before this time.' },
      json: { meaning: 'For replay: prints JSON.' },
    },
    examples: [
      'portcullis rules check rules.yaml',
      'portcullis rules test rules.yaml cases.yaml',
      'portcullis rules replay audit.jsonl rules.yaml --since 2026-11-22',
    ],
  },
  revoke: {
    summary: 'End access tokens before they expire: of a user, a session or a client, or one token.',
    forms: ['--sub SUBJECT', '--sid SESSION', '--client CLIENT', '--jti ID', '--list'],
    reads:
      'It writes to the Redis of REVOCATION_STORE, or with --admin to a running service. Exit status: 0; 64 usage; 69 if Redis or the service is unreachable or refuses; 78 if neither is configured.',
    flags: {
      sub: { value: 'SUBJECT', meaning: 'All tokens of a user.' },
      sid: { value: 'SESSION', meaning: 'All tokens of a session.' },
      client: { value: 'CLIENT', meaning: 'All tokens of a client.' },
      jti: { value: 'ID', meaning: 'One token.' },
      list: { meaning: 'Lists the cutoffs in Redis.' },
      issuer: { value: 'URL', meaning: 'Issuer of the tokens (default: the configured issuer).' },
      before: {
        value: 'TIME',
        meaning:
          'Refuses tokens issued until then: ISO 8601, or seconds since 1970 (default: the second before now, so that a later login is admitted; later if the clock of the provider is ahead).',
      },
      admin: { value: 'URL', meaning: 'Admin listener of a running service, with the key in ADMIN_KEY_FILE.' },
      json: { meaning: 'Prints what happened, or each cutoff, as one line of JSON.' },
    },
    examples: [
      'portcullis revoke --sub alice --issuer https://id.example/',
      'portcullis revoke --client app --admin http://127.0.0.1:9464',
      'portcullis revoke --list',
    ],
  },
  config: {
    summary: 'Print the effective settings and where each comes from.',
    reads: `It reads settings from flags, environment variables and the file of --settings. ${order} Secrets are hidden. Exit status: 0; 78 if a setting is not valid.`,
    flags: { json: { meaning: 'Prints JSON.' } },
    settings: 'all',
    examples: ['portcullis config', 'portcullis config --settings settings.json', 'portcullis config --json'],
  },
} as const satisfies Readonly<Record<string, CommandRow>>;

export type CommandName = keyof typeof commandTable;

export function isCommand(name: string): name is CommandName {
  return Object.hasOwn(commandTable, name);
}
