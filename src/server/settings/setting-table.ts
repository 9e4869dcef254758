import * as v from 'valibot';
import { hideUserInfo, showUrl } from '../../core/http/shown-url.ts';
import { proofAlgorithms, tokenAlgs } from '../../core/jose/jws.ts';
import { errorBodyFormats } from '../../core/refusal/error-body.ts';
import { type VariantName, variants } from '../variants/variants.ts';
import { completeRows } from './setting-row.ts';
import * as schemas from './setting-schemas.ts';
import { isUnixSocket, parseUpstream } from './upstream-address.ts';

/** Hides the content of a PEM file that was set instead of its path. */
const pemFile = {
  ...schemas.filePath,
  fix: 'Set the path of a file in PEM.',
  redact: (value: string): string => (/-----|\p{Cc}/u.test(value) ? schemas.hidden : hideUserInfo(value)),
} as const;
const tlsFile = { ...pemFile, reload: 'change' } as const;

/** Every setting, in the order of the documentation. Its key gives its flag and its variable. */
export const settingTable = {
  ...completeRows('both', {
    variant: {
      schema: v.pipe(v.string(), v.toLowerCase(), v.picklist(Object.keys(variants) as VariantName[])), // the keys are the names
      defaultValue: 'a',
      meaning: 'The reference behaviour: `a` or `b`.',
      fix: `Set one of: ${Object.keys(variants).join(', ')}.`,
    },
    domain: {
      environment: ({ names }) => names.domain,
      schema: schemas.domain,
      defaultValue: undefined,
      meaning:
        'Host (and optional port) of the identity provider, without a scheme. The issuer is `https://<domain>/`; for another issuer, set `ISSUER`.',
      fix: 'Set only the host of the provider, such as tenant.eu.auth0.com: no scheme, path, space, credentials or slash. If the issuer has a path, set ISSUER.',
      redact: showUrl,
    },
    issuer: {
      schema: schemas.issuerUrl,
      defaultValue: '',
      meaning:
        'The complete issuer, instead of the domain: any https URL, including one with a path; compared byte for byte with `iss`.',
      fix: 'Set the issuer as tokens have it in iss, such as https://id.example.com/realms/main: https, no query, fragment, credentials, space or /.well-known.',
      redact: showUrl,
    },
    jwksUri: {
      schema: schemas.keysUrl,
      defaultValue: '',
      meaning:
        'https URL of the keys. With it no metadata is fetched, and the issuer may be an http URL: for AD FS, and for providers without `/.well-known/openid-configuration`.',
      fix: 'Set the jwks_uri of the provider, such as https://adfs.example.com/adfs/discovery/keys: https, no credentials or fragment.',
      redact: showUrl,
    },
    audience: {
      environment: ({ names }) => names.audience,
      schema: schemas.identifier,
      defaultValue: undefined,
      meaning: 'The API identifier, compared byte for byte with `aud`.',
      fix: 'Set the identifier that the provider has for this API, such as https://api.example.com/, without white space or quotation marks around it.',
    },
    subject: {
      ...schemas.oneOf('required', 'optional'),
      defaultValue: ({ subject }) => subject,
      meaning: '`optional` accepts tokens whose `sub` is absent or `null`, which have no subject then.',
    },
    clockTolerance: {
      schema: schemas.clockTolerance,
      defaultValue: ({ defaults }) => {
        const { exp, nbf } = defaults.clockTolerance;
        return exp === nbf ? String(exp) : `exp ${exp}, nbf ${nbf}`;
      },
      meaning: 'Seconds by which clocks may differ, 0 to 60; `nbf` also applies to `iat`.',
      fix: 'Set a number of seconds from 0 to 60.',
    },
    algorithms: {
      schema: schemas.algorithmList(tokenAlgs),
      defaultValue: 'RS256',
      meaning: 'Algorithms accepted in access tokens, comma-separated; only asymmetric algorithms can be named.',
      fix: `Set any of ${tokenAlgs.join(', ')}, separated by commas. ML-DSA requires Node 24.6 or later.`,
    },
    dpopEnabled: {
      ...schemas.flag,
      defaultValue: ({ defaults }) => String(defaults.dpopEnabled),
      meaning: '`true` accepts DPoP-bound tokens.',
    },
    dpopRequired: { ...schemas.flag, defaultValue: 'false', meaning: '`true` refuses Bearer.' },
    dpopAlgorithms: {
      schema: schemas.algorithmList(proofAlgorithms),
      defaultValue: 'ES256',
      meaning: `Algorithms accepted in proofs: any of ${proofAlgorithms.map((alg) => `\`${alg}\``).join(', ')}, comma-separated.`,
      fix: `Set any of ${proofAlgorithms.join(', ')}, separated by commas. ML-DSA requires Node 24.6 or later.`,
    },
    dpopNonce: {
      ...schemas.oneOf('off', 'required'),
      defaultValue: 'off',
      meaning: '`off`, or `required`: proofs must carry a nonce of this server.',
    },
    dpopNonceSecret: {
      ...schemas.secretBytes,
      meaning:
        'At least 32 bytes, equal in all instances. `DPOP_NONCE=required` requires it; with Redis it lets clients through immediately after a restart of Redis.',
    },
    replayStore: {
      ...schemas.redisUrl,
      schema: schemas.replayStore,
      meaning:
        'Where used proofs are recorded: `memory`, `off`, or a URL shared by instances: `redis://`, `redis+sentinel://` or `redis+cluster://`, each with `rediss` for TLS.',
      fix: 'Set memory, off, or a URL such as redis://localhost:6379, redis+sentinel://one:26379,two:26379/NAME or redis+cluster://one:6379,two:6379.',
    },
    replayTimeout: {
      ...schemas.number(1, 10_000, 'milliseconds'),
      defaultValue: '250',
      meaning: 'Milliseconds until a Redis call times out.',
    },
    replayNamespace: {
      schema: schemas.textLike(/^[\w.-]{1,64}$/),
      defaultValue: 'serve',
      meaning:
        'Services with different names in one Redis do not share proofs. `portcullis gate` has the default `gate`.',
      fix: 'Set 1 to 64 letters, digits, _, . or -.',
    },
    sentinelPassword: {
      ...schemas.secretBytes,
      schema: schemas.textLike(/^\P{Cc}*$/u),
      meaning: 'Password for sentinels. The credentials in `REPLAY_STORE` are for Redis itself. Default: none.',
      fix: 'Set the password that the sentinels have.',
    },
    trustProxy: {
      schema: schemas.trust,
      defaultValue: 'false',
      meaning: '`true`, or a list of peer addresses / CIDR ranges whose `X-Forwarded-*` is trusted.',
      fix: 'Set true, false, or addresses and CIDR ranges separated by commas, such as 10.0.0.0/8,::1.',
    },
    externalUrl: {
      schema: schemas.externalUrl,
      defaultValue: '',
      meaning:
        'Origin (and prefix) under which clients call this API. DPoP proofs must match it, regardless of `Host` and `X-Forwarded-*`.',
      fix: 'Set the URL that clients call, without query and fragment, such as https://api.example.com or https://example.com/orders.',
      redact: showUrl,
    },
    host: {
      schema: schemas.textThat((text) => /^(?!unix:)[a-z0-9._:-]+$/i.test(text) || isUnixSocket(text)),
      defaultValue: '0.0.0.0',
      meaning: 'Address of the API listener, or `unix:` and the path of a unix socket, of at most 103 bytes.',
      fix: 'Set an address or host name of this host, such as 127.0.0.1, or unix:/run/portcullis.sock.',
    },
    port: {
      ...schemas.number(0, 65_535),
      defaultValue: '8000',
      meaning: 'Port of the API listener; `0` picks a free one and prints it.',
    },
    tlsCert: { ...pemFile, meaning: 'File with the certificate of the API listener and its chain, in PEM.' },
    tlsKey: { ...pemFile, meaning: 'File with the private key that belongs to `TLS_CERT`, in PEM.' },
    tlsClientCa: {
      ...tlsFile,
      meaning:
        'File with the authorities of client certificates, in PEM. Every client must then present a certificate, and tokens that are bound to one (RFC 8705) are accepted.',
    },
    keepAlive: {
      ...schemas.number(1, 3600, 'seconds'),
      defaultValue: '5',
      meaning: 'Seconds until an idle connection is closed. Set more than the load balancer has.',
    },
    peerShare: {
      schema: schemas.share,
      defaultValue: '0.25',
      meaning:
        'The part of each shared limit (connections, bytes held, slots of the proxy) that one address may use; of IPv6 one /64. Proxies in `TRUST_PROXY` and unix sockets are exempt: their requests count by client address. `1` turns it off.',
      fix: 'Set a number over 0 and at most 1, such as 0.25.',
    },
    drainDelay: {
      ...schemas.number(0, 300, 'seconds'),
      defaultValue: '0',
      meaning:
        'Seconds from SIGTERM, 0 to 300, for which new connections are still accepted while `/readyz` responds with 503. Set as long as the load balancer takes to notice.',
    },
    workers: {
      schema: v.union([v.literal('auto'), schemas.integer(1, 256)]),
      defaultValue: '1',
      meaning:
        'Number of independent processes that share the port, or `auto` for one per core. More than one need Redis for DPoP and for cutoffs.',
      fix: 'Set a number from 1 to 256, or auto.',
    },
    adminHost: {
      schema: schemas.textLike(/^[a-z0-9._:-]+$/i),
      defaultValue: '127.0.0.1',
      meaning: 'Address of the admin listener: `/healthz`, `/readyz`, `/metrics`.',
      fix: 'Set an address or host name of this host, such as 127.0.0.1.',
    },
    adminPort: {
      schema: v.union([v.literal('off'), schemas.integer(0, 65_535)]),
      defaultValue: '9464',
      meaning: 'Port of the admin listener; `0` picks a free one, `off` disables it.',
      fix: 'Set a number from 0 to 65535, or off.',
    },
    adminHosts: {
      schema: schemas.hostNames,
      defaultValue: '',
      meaning: 'Comma-separated host names that `/metrics` accepts, in addition to addresses and names of loopback.',
      fix: 'Set host names without a port, such as portcullis.monitoring.svc.',
    },
    console: {
      ...schemas.oneOf('off', 'on'),
      defaultValue: 'off',
      meaning:
        '`on` shows the last decisions at `/console` of the admin listener, on this host only. `dev` turns it on.',
    },
    consoleKeyFile: {
      ...schemas.filePath,
      meaning:
        'File that the key of the console is written to, readable by the user of the service only; `explain --admin` reads it too. `dev` chooses one.',
      fix: 'Set the path of a file in a folder that only this service can write to, such as /run/portcullis/console-key.',
    },
    keysStale: {
      ...schemas.number(0, 86_400, 'seconds'),
      defaultValue: '3600',
      meaning: 'Seconds, 0 to 86400, for which the last key set is used after its lifetime if the provider is down.',
    },
    keysCache: {
      ...schemas.filePath,
      meaning:
        'File that stores the last key set, so that a service that restarts while the provider is down can validate tokens. Other users must not be able to write to it.',
      fix: 'Set the path of a file in a folder that only this service can write to, such as /var/lib/portcullis/keys.json.',
    },
    revocationStore: {
      ...schemas.redisUrl,
      schema: schemas.revocationStore,
      meaning:
        'Store of cutoffs, which end access tokens early: `memory`, or a URL in any form of `REPLAY_STORE`, shared by instances.',
      fix: 'Set memory, or a URL such as redis://localhost:6379.',
    },
    revocationStale: {
      ...schemas.oneOf('accept', 'refuse'),
      defaultValue: 'accept',
      meaning:
        'Treatment of tokens after 60 s without contact to `REVOCATION_STORE`: `accept`, or `refuse` with 503. Known cutoffs always apply.',
    },
    maxTokenLifetime: {
      ...schemas.number(1, 31_536_000, 'seconds'),
      defaultValue: '86400',
      meaning:
        'Longest lifetime of an access token (`exp` minus `iat`) in seconds. A cutoff is retained for this long. It applies if any source of revocations is configured.',
    },
    logoutClients: {
      schema: schemas.names,
      defaultValue: '',
      meaning:
        'Comma-separated client ids. Logout tokens for one of them (OpenID Connect Back-Channel Logout) end access tokens.',
      fix: 'Set the ids of the clients that users log in to, separated by commas, such as app,spa.',
    },
    logoutSubject: {
      ...schemas.flag,
      defaultValue: 'false',
      meaning: '`true` ends all tokens of the user at each logout, for providers whose access tokens have no `sid`.',
    },
    sharedSignals: {
      ...schemas.filePath,
      meaning: 'JSON file with the streams of Shared Signals transmitters that end access tokens.',
      fix: 'Set the path of a JSON file, such as { "streams": { "okta": { "transmitter": "https://…" } } }.',
    },
    adminKeyFile: {
      ...schemas.filePath,
      meaning: 'File with the key for `POST /revocations` on the admin listener. Without it, the path is 404.',
      fix: 'Set the path of a file with at least 32 random bytes, for example the output of: openssl rand -base64 48.',
    },
    errorBody: {
      ...schemas.oneOf(...(Object.keys(errorBodyFormats) as (keyof typeof errorBodyFormats)[])), // the keys are the names
      defaultValue: ({ defaults }) => defaults.errorBody,
      meaning: 'Form of error bodies: `detail`, `flat`, `message`, `problem`.',
    },
    corsOrigins: {
      schema: schemas.origins,
      defaultValue: '',
      meaning: 'Comma-separated origins that browsers may call from.',
      fix: 'Set origins such as https://app.example.com: scheme, host and port, no path.',
    },
  }),
  ...completeRows('serve', {
    customClaim: {
      schema: schemas.identifier,
      defaultValue: 'https://portcullis.example/claim',
      meaning: 'Name of the claim that `/api/profile` returns.',
      fix: 'Set the name of a claim, such as https://my-app.example/claim, without white space or quotation marks around it.',
    },
    docs: { ...schemas.flag, defaultValue: 'true', meaning: '`true` serves `/openapi.json` and `/docs`.' },
  }),
  ...completeRows('both', {
    logIdentity: {
      ...schemas.oneOf('off', 'plain', 'hashed'),
      defaultValue: 'off',
      meaning:
        'How log lines of requests with a verified token name `sub` and `client_id`: `off` (not), `plain`, or `hashed`.',
    },
    logIdentitySecret: {
      ...schemas.secretBytes,
      meaning: 'At least 32 bytes, equal in all instances. `LOG_IDENTITY=hashed` requires it.',
    },
    logLevel: {
      ...schemas.oneOf('info', 'warn', 'error'),
      defaultValue: 'info',
      reload: 'hangup',
      meaning:
        'Lowest level of logged events. `warn` and `error` also omit admitted requests; refused and failed requests are always logged.',
    },
    logGrants: {
      ...schemas.oneOf('all', 'none'),
      defaultValue: 'all',
      reload: 'hangup',
      meaning: 'Admitted requests that are logged: `all` or `none`. Every refused request is logged.',
    },
    auditLog: {
      schema: schemas.textLike(/^\P{Cc}+$/u),
      defaultValue: 'off',
      reload: 'hangup',
      meaning: 'Audit trail, one JSON line per decision: the path of a file, `stdout`, `stderr`, or `off`.',
      fix: 'Set the path of a file that this service can append to, stdout, stderr, or off.',
    },
    auditFull: {
      ...schemas.oneOf('block', 'drop'),
      defaultValue: 'block',
      meaning:
        'While lines cannot be written: `block` responds to requests that need a token with 503; `drop` drops and counts the lines.',
    },
    auditPath: {
      ...schemas.oneOf('on', 'off'),
      defaultValue: 'on',
      meaning: '`off` omits the paths of requests from the audit trail.',
    },
  }),
  ...completeRows('gate', {
    rules: {
      schema: v.string(),
      defaultValue: '',
      reload: 'change',
      meaning: 'File with the rules.',
      fix: 'Set the path of a file with rules, in JSON or YAML.',
    },
    upstream: {
      schema: v.union([v.literal(''), schemas.readable(parseUpstream)]),
      defaultValue: '',
      meaning:
        'Server that admitted requests are forwarded to: `http://host:port`, `https://host:port` or `unix:/path`. Without it, the gate only decides for other proxies.',
      fix: 'Set http://host:port, https://host:port or unix:/path/of/socket, with nothing after it.',
      redact: showUrl,
    },
    mcp: {
      environment: 'MCP_SERVER',
      ...schemas.flag,
      defaultValue: 'false',
      meaning:
        '`true` serves the metadata of MCP servers (RFC 9728), with the audience as the URL of the server. Without rules, as the proxy, it also protects that URL as an MCP server. `--mcp` without a value sets `true`.',
    },
    upstreamTimeout: {
      ...schemas.number(1, 3600, 'seconds'),
      defaultValue: '60',
      meaning:
        'Seconds for the upstream to accept a connection, to begin its response, and between two parts of the response, except of an event stream. An upstream in rules may have its own `timeout`.',
    },
    tunnelTimeout: {
      ...schemas.number(1, 86_400, 'seconds'),
      defaultValue: '3600',
      meaning: 'Seconds after which an idle tunnel (WebSocket) or event stream is closed.',
    },
    uploadTimeout: {
      ...schemas.number(1, 3600, 'seconds'),
      defaultValue: '60',
      meaning:
        'Seconds after which an upload without progress, and a body for the gate itself (logout, event, MCP) that is not complete, is refused with 408.',
    },
    assertionKey: {
      ...pemFile,
      meaning:
        'File with the private key that signs assertions, in PEM: P-256 or Ed25519. Rules that send assertions require it.',
    },
    assertionKeysPublished: {
      schema: schemas.filePaths,
      defaultValue: '',
      reload: 'hangup',
      meaning:
        'Comma-separated PEM files of further keys, private or public, whose public parts are served: the next key, or the previous one.',
      fix: 'Set paths of PEM files, separated by commas.',
      redact: pemFile.redact,
    },
    scope: {
      schema: schemas.textLike(/^(?:[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*)?$/),
      defaultValue: '',
      meaning: 'Without rules: scopes that every token must have, separated by spaces.',
      fix: 'Set scopes separated by single spaces, such as "read:orders".',
    },
  }),
} as const;

export type SettingName = keyof typeof settingTable;
