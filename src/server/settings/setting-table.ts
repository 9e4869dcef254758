import * as v from 'valibot';
import { showUrl } from '../../http/shown-url.ts';
import { isUpstream } from '../../http/upstream-address.ts';
import { proofAlgorithms, tokenAlgs } from '../../jose/algorithms.ts';
import { errorBodyFormats } from '../../refusal/error-body.ts';
import { type Variant, type VariantName, variants } from '../variants/variants.ts';
import {
  algorithmList,
  boolean,
  clockTolerance,
  domain,
  externalUrl,
  hostNames,
  integer,
  issuerUrl,
  origins,
  printable,
  replayNamespace,
  replayStore,
  share,
  textLike,
  trust,
} from './setting-schemas.ts';

/** One setting: where it is read from, what it may be, and its fix. */
export interface SettingRow {
  /** Flag without dashes. */
  readonly flag: string;
  /** Environment variable, or its name by variant; the settings file takes the same name, in lower case too. */
  readonly environment: string | ((variant: Variant) => string);
  /** Turns what was written (text, or a value of the JSON file) into the setting's value. */
  readonly schema: v.GenericSchema;
  /** Written form of the default; `undefined` where the setting is required. */
  readonly defaultValue: string | ((variant: Variant) => string) | undefined;
  readonly meaning: string;
  /** What to do when the value is refused. */
  readonly fix: string;
  /**
   * Whether the value is a secret (`always`), or may hold one in the user information of a URL (`credentials`). A secret
   * can be read from `NAME_FILE`, and is refused as a flag.
   */
  readonly secret?: 'always' | 'credentials';
  /** The one command that reads it. Default: `serve` and `gate`. */
  readonly readBy?: 'serve' | 'gate';
  /** How the value is shown where it is, or may hold, a secret. */
  readonly redact?: (value: string) => string;
}

const booleanFix = 'Write true or false.';
/** Replacement for a secret in output. */
export const hidden = '***';
/** Hides what should be in the file that the setting names. */
const hidePem = (value: string): string => (/-----|\p{Cc}/u.test(value) ? hidden : value);

/** Every setting, in the order of the documentation. */
export const settingTable = {
  variant: {
    flag: 'variant',
    environment: 'VARIANT',
    schema: v.pipe(v.string(), v.toLowerCase(), v.picklist(Object.keys(variants) as VariantName[])), // the keys are the names
    defaultValue: 'a',
    meaning: 'Which reference behaviour: `a` or `b`.',
    fix: `Write one of: ${Object.keys(variants).join(', ')}.`,
  },
  domain: {
    flag: 'domain',
    environment: ({ names }) => names.domain,
    schema: domain,
    defaultValue: undefined,
    meaning:
      'Host (and optional port) of the identity provider, without a scheme. The issuer is `https://<domain>/`; another one goes into `ISSUER`.',
    fix: 'Write only the host of the provider, such as tenant.eu.auth0.com: no scheme, path, space, credentials or slash. An issuer with a path goes into ISSUER.',
    redact: showUrl,
  },
  issuer: {
    flag: 'issuer',
    environment: 'ISSUER',
    schema: issuerUrl,
    defaultValue: '',
    meaning:
      'The issuer in full, in place of the domain: any https URL, with a path too; compared byte for byte with `iss`.',
    fix: 'Write the issuer as tokens have it in iss, such as https://id.example.com/realms/main: https, no query, fragment, credentials or space.',
    redact: showUrl,
  },
  audience: {
    flag: 'audience',
    environment: ({ names }) => names.audience,
    schema: printable,
    defaultValue: undefined,
    meaning: 'The API identifier, compared byte for byte with `aud`.',
    fix: 'Write the identifier of this API as the provider knows it, such as https://api.example.com/.',
  },
  dpopEnabled: {
    flag: 'dpop-enabled',
    environment: 'DPOP_ENABLED',
    schema: boolean,
    defaultValue: ({ defaults }) => String(defaults.dpopEnabled),
    meaning: 'Whether DPoP-bound tokens are accepted.',
    fix: booleanFix,
  },
  dpopRequired: {
    flag: 'dpop-required',
    environment: 'DPOP_REQUIRED',
    schema: boolean,
    defaultValue: 'false',
    meaning: '`true` refuses Bearer.',
    fix: booleanFix,
  },
  dpopAlgorithms: {
    flag: 'dpop-algorithms',
    environment: 'DPOP_ALGORITHMS',
    schema: algorithmList(proofAlgorithms),
    defaultValue: 'ES256',
    meaning: `Algorithms accepted in proofs: any of ${proofAlgorithms.map((alg) => `\`${alg}\``).join(', ')}, comma-separated.`,
    fix: `Write any of ${proofAlgorithms.join(', ')}, separated by commas.`,
  },
  dpopNonce: {
    flag: 'dpop-nonce',
    environment: 'DPOP_NONCE',
    schema: v.picklist(['off', 'required']),
    defaultValue: 'off',
    meaning: '`off`, or `required`: proofs must carry a nonce of this server.',
    fix: 'Write off or required.',
  },
  dpopNonceSecret: {
    flag: 'dpop-nonce-secret',
    secret: 'always',
    environment: 'DPOP_NONCE_SECRET',
    schema: v.pipe(
      v.string(),
      v.check((text) => text === '' || Buffer.byteLength(text) >= 32),
    ),
    defaultValue: '',
    meaning:
      'At least 32 bytes, the same for all instances; needed with `DPOP_NONCE=required`, and with Redis for clients to get through right after a restart of it.',
    fix: 'Write at least 32 random bytes, for example the output of: openssl rand -base64 48.',
    redact: (value) => (value === '' ? '' : hidden),
  },
  replayStore: {
    flag: 'replay-store',
    secret: 'credentials',
    environment: 'REPLAY_STORE',
    schema: replayStore,
    defaultValue: 'memory',
    meaning:
      'Where used proofs are remembered: `memory`, `off`, or a URL shared by instances: `redis://`, `redis+sentinel://` or `redis+cluster://`, each with `rediss` for TLS.',
    fix: 'Write memory, off, or a URL such as redis://localhost:6379, redis+sentinel://one:26379,two:26379/NAME or redis+cluster://one:6379,two:6379.',
    // Neither a word nor a URL: it may be a password.
    redact: (value) => (/^(?:[a-z]{0,10}|rediss?(?:\+[a-z]+)?:\/\/.*)$/is.test(value) ? showUrl(value) : hidden),
  },
  replayTimeout: {
    flag: 'replay-timeout',
    environment: 'REPLAY_TIMEOUT',
    schema: integer(1, 10_000),
    defaultValue: '250',
    meaning: 'Milliseconds that an answer of Redis is waited for.',
    fix: 'Write a number of milliseconds from 1 to 10000.',
  },
  replayNamespace: {
    flag: 'replay-namespace',
    environment: 'REPLAY_NAMESPACE',
    schema: replayNamespace,
    defaultValue: 'serve',
    meaning:
      'Services of other names in one Redis do not know the proofs of each other. `portcullis gate` has the default `gate`.',
    fix: 'Write 1 to 64 letters, digits, _, . or -.',
  },
  trustProxy: {
    flag: 'trust-proxy',
    environment: 'TRUST_PROXY',
    schema: trust,
    defaultValue: 'false',
    meaning: '`true`, or a list of peer addresses / CIDR ranges whose `X-Forwarded-*` is believed.',
    fix: 'Write true, false, or addresses and CIDR ranges separated by commas, such as 10.0.0.0/8,::1.',
  },
  externalUrl: {
    flag: 'external-url',
    environment: 'EXTERNAL_URL',
    schema: externalUrl,
    defaultValue: '',
    meaning:
      'Origin (and prefix) under which clients call this API. DPoP proofs are held against it, whatever `Host` and `X-Forwarded-*` say.',
    fix: 'Write the URL that clients call, without query and fragment, such as https://api.example.com or https://example.com/orders.',
    redact: showUrl,
  },
  drainDelay: {
    flag: 'drain-delay',
    environment: 'DRAIN_DELAY',
    schema: integer(0, 300),
    defaultValue: '0',
    meaning:
      'Seconds from SIGTERM for which new connections are still accepted while `/readyz` says 503, 0 to 300; as long as the load balancer takes to notice.',
    fix: 'Write a number of seconds from 0 to 300.',
  },
  host: {
    flag: 'host',
    environment: 'HOST',
    schema: textLike(/^(?:[a-z0-9._:-]+|unix:\P{Cc}+)$/iu),
    defaultValue: '0.0.0.0',
    meaning: 'Address of the API listener, or `unix:` and the path of a unix socket.',
    fix: 'Write an address or host name of this machine, such as 127.0.0.1, or unix:/run/portcullis.sock.',
  },
  port: {
    flag: 'port',
    environment: 'PORT',
    schema: integer(0, 65_535),
    defaultValue: '8000',
    meaning: 'Port of the API listener; `0` picks a free one and prints it.',
    fix: 'Write a number from 0 to 65535.',
  },
  adminHost: {
    flag: 'admin-host',
    environment: 'ADMIN_HOST',
    schema: textLike(/^[a-z0-9._:-]+$/i),
    defaultValue: '127.0.0.1',
    meaning: 'Address of the admin listener: `/healthz`, `/readyz`, `/metrics`.',
    fix: 'Write an address or host name of this machine, such as 127.0.0.1.',
  },
  adminPort: {
    flag: 'admin-port',
    environment: 'ADMIN_PORT',
    schema: v.union([v.literal('off'), integer(0, 65_535)]),
    defaultValue: '9464',
    meaning: 'Port of the admin listener; `0` picks a free one, `off` disables it.',
    fix: 'Write a number from 0 to 65535, or off.',
  },
  adminHosts: {
    flag: 'admin-hosts',
    environment: 'ADMIN_HOSTS',
    schema: hostNames,
    defaultValue: '',
    meaning: 'Comma-separated host names under which `/metrics` answers, besides addresses and names of loopback.',
    fix: 'Write host names without a port, such as portcullis.monitoring.svc.',
  },
  console: {
    flag: 'console',
    environment: 'CONSOLE',
    schema: v.picklist(['off', 'on']),
    defaultValue: 'off',
    meaning:
      '`on` shows the last decisions at `/console` of the admin listener, on this machine only. `dev` turns it on.',
    fix: 'Write off or on.',
  },
  consoleKeyFile: {
    flag: 'console-key-file',
    environment: 'CONSOLE_KEY_FILE',
    schema: textLike(/^\P{Cc}*$/u),
    defaultValue: '',
    meaning:
      'File that the key of the console is written to, readable by the user of the service only; `explain --admin` reads it too. `dev` chooses one.',
    fix: 'Write the path of a file in a folder that only this service can write to, such as /run/portcullis/console-key.',
  },
  tlsCert: {
    flag: 'tls-cert',
    environment: 'TLS_CERT',
    schema: textLike(/^\P{Cc}*$/u),
    defaultValue: '',
    meaning: 'File with the certificate of the API listener and its chain, in PEM; read again on SIGHUP.',
    fix: 'Write the path of a file in PEM.',
    redact: hidePem,
  },
  tlsKey: {
    flag: 'tls-key',
    environment: 'TLS_KEY',
    schema: textLike(/^\P{Cc}*$/u),
    defaultValue: '',
    meaning: 'File with the private key that belongs to `TLS_CERT`, in PEM; read again on SIGHUP.',
    fix: 'Write the path of a file in PEM.',
    redact: hidePem,
  },
  tlsClientCa: {
    flag: 'tls-client-ca',
    environment: 'TLS_CLIENT_CA',
    schema: textLike(/^\P{Cc}*$/u),
    defaultValue: '',
    meaning:
      'File with the authorities of client certificates, in PEM: every client must present one, and tokens that are bound to one (RFC 8705) are accepted.',
    fix: 'Write the path of a file in PEM.',
  },
  workers: {
    flag: 'workers',
    environment: 'WORKERS',
    schema: v.union([v.literal('auto'), integer(1, 256)]),
    defaultValue: '1',
    meaning: 'Number of processes, or `auto` for one a core.',
    fix: 'Write a number from 1 to 256, or auto.',
  },
  clockTolerance: {
    flag: 'clock-tolerance',
    environment: 'CLOCK_TOLERANCE',
    schema: clockTolerance,
    defaultValue: ({
      defaults: {
        clockTolerance: { exp, nbf },
      },
    }) => (exp === nbf ? String(exp) : `exp ${exp}, nbf ${nbf}`),
    meaning: 'Seconds by which clocks may differ, 0 to 60; `nbf` goes for `iat` too.',
    fix: 'Write a number of seconds from 0 to 60.',
  },
  algorithms: {
    flag: 'algorithms',
    environment: 'ALGORITHMS',
    schema: algorithmList(tokenAlgs),
    defaultValue: 'RS256',
    meaning: 'Algorithms accepted in access tokens, comma-separated; only asymmetric algorithms can be named.',
    fix: `Write any of ${tokenAlgs.join(', ')}, separated by commas.`,
  },
  keysStale: {
    flag: 'keys-stale',
    environment: 'KEYS_STALE',
    schema: integer(0, 86_400),
    defaultValue: '3600',
    meaning:
      'Seconds for which the last good key set is used beyond its freshness while the provider is down, 0 to 86400.',
    fix: 'Write a number of seconds from 0 to 86400.',
  },
  keysCache: {
    flag: 'keys-cache',
    environment: 'KEYS_CACHE',
    schema: textLike(/^\P{Cc}*$/u),
    defaultValue: '',
    meaning:
      'File that keeps the last good key set, so that a restart while the provider is down can judge tokens; nobody else may be able to write to it.',
    fix: 'Write the path of a file in a folder that only this service can write to, such as /var/lib/portcullis/keys.json.',
  },
  denyList: {
    flag: 'deny-list',
    environment: 'DENY_LIST',
    schema: textLike(/^\P{Cc}*$/u),
    defaultValue: '',
    meaning:
      'JSON file with lists of `jti`, `sub` and `kid` whose tokens are refused; read again when it changes, and on SIGHUP.',
    fix: 'Write the path of a JSON file, such as { "jti": ["..."], "sub": [], "kid": [] }.',
  },
  errorBody: {
    flag: 'error-body',
    environment: 'ERROR_BODY',
    schema: v.picklist(Object.keys(errorBodyFormats) as (keyof typeof errorBodyFormats)[]), // the keys are the names
    defaultValue: ({ defaults }) => defaults.errorBody,
    meaning: 'Form of error bodies: `detail`, `flat`, `message`, `problem`.',
    fix: `Write one of: ${Object.keys(errorBodyFormats).join(', ')}.`,
  },
  customClaim: {
    flag: 'custom-claim',
    environment: 'CUSTOM_CLAIM',
    readBy: 'serve',
    schema: printable,
    defaultValue: 'https://portcullis.example/claim',
    meaning: 'Name of the claim that `/api/profile` shows.',
    fix: 'Write the name of a claim, such as https://my-app.example/claim.',
  },
  docs: {
    flag: 'docs',
    environment: 'DOCS',
    readBy: 'serve',
    schema: boolean,
    defaultValue: 'true',
    meaning: 'Whether `/openapi.json` and `/docs` are served.',
    fix: booleanFix,
  },
  corsOrigins: {
    flag: 'cors-origins',
    environment: 'CORS_ORIGINS',
    readBy: 'serve',
    schema: origins,
    defaultValue: '',
    meaning: 'Comma-separated origins that browsers may call from.',
    fix: 'Write origins such as https://app.example.com: scheme, host and port, no path.',
  },
  logIdentity: {
    flag: 'log-identity',
    environment: 'LOG_IDENTITY',
    schema: v.picklist(['off', 'plain', 'hashed']),
    defaultValue: 'off',
    meaning:
      'Whether log lines of calls with a verified token name `sub` and `client_id`: `off`, `plain`, or `hashed`.',
    fix: 'Write off, plain or hashed.',
  },
  logIdentitySecret: {
    flag: 'log-identity-secret',
    secret: 'always',
    environment: 'LOG_IDENTITY_SECRET',
    schema: v.pipe(
      v.string(),
      v.check((text) => text === '' || Buffer.byteLength(text) >= 32),
    ),
    defaultValue: '',
    meaning: 'At least 32 bytes, the same for all instances; needed with `LOG_IDENTITY=hashed`.',
    fix: 'Write at least 32 random bytes, for example the output of: openssl rand -base64 48.',
    redact: (value) => (value === '' ? '' : hidden),
  },
  logGrants: {
    flag: 'log-grants',
    environment: 'LOG_GRANTS',
    schema: v.union([v.picklist(['all', 'none']), integer(1, 1_000_000)]),
    defaultValue: 'all',
    meaning:
      'Which admitted calls are logged: `all`, `none`, or a number N for one call in N. Refused calls always are.',
    fix: 'Write all, none, or a number from 1 to 1000000.',
  },
  keepAlive: {
    flag: 'keep-alive',
    environment: 'KEEP_ALIVE',
    schema: integer(1, 3600),
    defaultValue: '5',
    meaning: "Seconds an idle connection is kept; set it above the load balancer's own.",
    fix: 'Write a number of seconds from 1 to 3600.',
  },
  peerShare: {
    flag: 'peer-share',
    environment: 'PEER_SHARE',
    schema: share,
    defaultValue: '0.25',
    meaning:
      'The part of each limit that all clients share (connections, waiting requests, bytes held, places of the proxy) that one address may take; of IPv6 one /64. Proxies in `TRUST_PROXY` and unix sockets are exempt: their requests count by client address. `1` turns it off.',
    fix: 'Write a number over 0 and at most 1, such as 0.25.',
  },
  tunnelTimeout: {
    flag: 'tunnel-timeout',
    environment: 'TUNNEL_TIMEOUT',
    readBy: 'gate',
    schema: integer(1, 86_400),
    defaultValue: '3600',
    meaning: 'Seconds after which an idle tunnel (WebSocket) is closed.',
    fix: 'Write a number of seconds from 1 to 86400.',
  },
  uploadTimeout: {
    flag: 'upload-timeout',
    environment: 'UPLOAD_TIMEOUT',
    readBy: 'gate',
    schema: integer(1, 3600),
    defaultValue: '60',
    meaning: 'As the proxy: seconds without a byte of an upload after which it is refused with 408.',
    fix: 'Write a number of seconds from 1 to 3600.',
  },
  rules: {
    flag: 'rules',
    environment: 'RULES',
    readBy: 'gate',
    schema: v.string(),
    defaultValue: '',
    meaning: 'File with the rules; read again when it changes, and on SIGHUP.',
    fix: 'Name a file with rules, in JSON or YAML.',
  },
  upstream: {
    flag: 'upstream',
    environment: 'UPSTREAM',
    readBy: 'gate',
    schema: v.union([v.literal(''), v.pipe(v.string(), v.check(isUpstream))]),
    defaultValue: '',
    meaning:
      'Server that requests go on to, `http://host:port`, `https://host:port` or `unix:/path`. Without it the gate only answers other proxies.',
    fix: 'Write http://host:port, https://host:port or unix:/path/of/socket, with nothing behind it.',
    redact: showUrl,
  },
  upstreamTimeout: {
    flag: 'upstream-timeout',
    environment: 'UPSTREAM_TIMEOUT',
    readBy: 'gate',
    schema: integer(1, 3600),
    defaultValue: '60',
    meaning: 'Seconds for the upstream to take a connection, to begin its answer, and between two parts of it.',
    fix: 'Write a number of seconds from 1 to 3600.',
  },
  upstreamKeepAlive: {
    flag: 'upstream-keep-alive',
    environment: 'UPSTREAM_KEEP_ALIVE',
    readBy: 'gate',
    schema: v.picklist(['on', 'off']),
    defaultValue: 'on',
    meaning:
      '`off` opens a connection to the upstream for each request, for an upstream that may send more bytes than its `Content-Length`.',
    fix: 'Write on or off.',
  },
  scope: {
    flag: 'scope',
    environment: 'SCOPE',
    readBy: 'gate',
    schema: textLike(/^(?:[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*)?$/),
    defaultValue: '',
    meaning: 'Without rules: scopes that every token must have, separated by spaces.',
    fix: 'Write scopes separated by single spaces, such as "read:orders".',
  },
} as const satisfies Readonly<Record<string, SettingRow>>;

export type SettingName = keyof typeof settingTable;

/** Returns the meaning of a setting for the documentation, with the one command that reads it. */
export function describeSetting({ readBy, meaning }: SettingRow): string {
  return readBy === undefined ? meaning : `Only \`${readBy}\`. ${meaning}`;
}
