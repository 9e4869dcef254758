import { showText } from '../../core/shown-text.ts';

/** Result of a check. `skipped`: it did not run. `unknown`: it crashed. */
export type Level = 'ok' | 'warn' | 'fail' | 'skipped' | 'unknown';

export interface Finding {
  readonly check: CheckName;
  readonly level: Level;
  readonly name?: FindingName;
  /** Name of the entry in `issuers`, if there are several. */
  readonly issuer?: string;
  /** Observation, or the reason for `skipped`. */
  readonly seen: string;
  readonly expected?: string;
  readonly fix?: string;
  /** Page and anchor, below `docs/`. */
  readonly docs?: string;
}

const show = (text: string): string => showText(text, 300);
const result =
  (level: Level) =>
  (check: CheckName, seen: string): Finding => ({ check, level, seen: show(seen) });
export const ok = result('ok');
export const skipped = result('skipped');
export const unknown = result('unknown');

interface Details {
  readonly fix: string;
  readonly expected?: string | undefined;
  /** Default: the level of the table. */
  readonly level?: Level | undefined;
}

export function problem(name: FindingName, seen: string, details: string | Details): Finding {
  const { check, level: usual } = findings[name];
  const { fix, expected, level = usual }: Details = typeof details === 'string' ? { fix: details } : details;
  const shown = expected !== undefined && { expected: show(expected) };
  return { check, level, name, seen: show(seen), ...shown, fix: show(fix), docs: `explain.md#${name}` };
}

/** The checks, in the order of the output. */
export const doctorChecks = {
  provider: 'Each provider responds, has the configured issuer, and publishes keys that an enabled algorithm can use.',
  tls: 'The certificates of the providers are trusted.',
  clock: 'The clocks of this host and of the providers agree.',
  url: 'The service sees the URL and the credentials that its clients send.',
  redis: 'The replay store and the store of cutoffs can use Redis.',
  revocation: 'A logout ends access tokens.',
  rules: 'The rules of the gate are valid, and requests can reach them.',
  dpop: 'Instances accept the nonces of each other, and share one replay store.',
} as const;

export type CheckName = keyof typeof doctorChecks;

const fail = (check: CheckName, meaning: string) => ({ level: 'fail', check, meaning }) as const;
const warn = (check: CheckName, meaning: string) => ({ level: 'warn', check, meaning }) as const;

/** All problems. A name never gets another meaning. */
export const findings = {
  provider_unreachable: fail('provider', 'The provider is down, or its address or port is wrong.'),
  proxy_failed: fail('provider', 'The outbound proxy is unreachable, or refuses to connect to the provider.'),
  issuer_differs: fail('provider', 'The metadata has another issuer: an internal name, or another trailing slash.'),
  domain_with_scheme: fail('provider', 'The domain is set with https://, so every token is refused.'),
  jwks_uri_invalid: fail('provider', 'The discovery document has no https URL of the keys.'),
  keys_unavailable: fail('provider', 'The metadata or the keys of the provider cannot be read.'),
  no_usable_key: fail('provider', 'The provider publishes no key that an enabled algorithm can use.'),
  key_unused: warn('provider', 'A published key is not used.'),
  introspection_failed: fail('provider', 'The introspection endpoint does not accept the client, or does not respond.'),
  exchange_failed: fail('provider', 'The provider does not accept a token exchange of the rules, or does not respond.'),
  certificate_untrusted: fail('tls', 'The chain of the provider ends in an authority that this host does not trust.'),
  certificate_name: fail('tls', 'The certificate of the provider is for another name.'),
  certificate_expired: fail('tls', 'The certificate of the provider has expired, or is not valid yet.'),
  plain_http: fail('tls', 'The port of the provider speaks plain HTTP.'),
  clock_behind: fail('clock', 'This host is behind the provider by more than the clock tolerance.'),
  clock_ahead: fail('clock', 'This host is ahead: tokens expire early here. A warning up to one minute.'),
  url_unreachable: fail('url', 'The service is unreachable under the URL of its clients.'),
  url_plain_http: fail('url', 'The URL begins with https, and the port speaks plain HTTP.'),
  url_certificate: fail('url', 'The certificate of the URL is invalid. A warning if only its authority is unknown.'),
  url_open: fail('url', 'The URL needs no token, or another server responds. A warning if the path may be wrong.'),
  url_limited: warn('url', 'The number of requests is limited, so the URL and the credentials were not compared.'),
  url_differs: fail('url', 'The service sees another URL: forwarded headers are missing or not trusted.'),
  prefix_stripped: fail('url', 'The proxy strips a path prefix, and the service does not know it.'),
  authorization_added: fail('url', 'A proxy adds an Authorization header to requests.'),
  authorization_stripped: fail('url', 'A proxy removes or replaces the Authorization header.'),
  dpop_stripped: fail('url', 'A proxy removes the DPoP header.'),
  preflight_refused: fail('url', 'A preflight of an allowed origin does not reach the service.'),
  redis_unreachable: fail('redis', 'Redis is unreachable.'),
  redis_tls: fail('redis', 'No TLS connection to Redis: it does not speak TLS, or its certificate is not trusted.'),
  redis_url: fail('redis', 'Redis has no such database, or is not what the URL says: a cluster, or sentinels.'),
  redis_login: fail('redis', 'Redis refuses the user or the password.'),
  redis_cluster: fail('redis', 'Redis is a cluster, and the URL is for a single server.'),
  redis_readonly: fail('redis', 'Redis refuses writes: it is a read-only replica, or cannot save its data.'),
  redis_full: fail('redis', 'Redis is out of memory.'),
  redis_permissions: fail('redis', 'The user of Redis may not run a command of the store.'),
  redis_clients: fail('redis', 'Redis has too many clients.'),
  redis_slow: fail('redis', 'Redis responds more slowly than REPLAY_TIMEOUT.'),
  redis_evicts: warn('redis', 'Redis may evict used proofs or cutoffs when its memory is full.'),
  logout_not_sent: warn('revocation', 'The provider does not announce that it sends logout tokens.'),
  logout_without_session: warn('revocation', 'Access tokens have no sid: the logout of a session ends none of them.'),
  rules_invalid: fail('rules', 'The rules of the gate are not valid.'),
  rule_doubtful: warn('rules', 'No request can reach a rule, or a weaker rule matches requests for its path.'),
  instance_unreachable: fail('dpop', 'An instance is unreachable.'),
  nonces_differ: fail('dpop', 'An instance does not know the nonces of another: their secrets differ.'),
  replay_not_shared: fail('dpop', 'Two instances accepted one proof: their replay store is not shared.'),
} as const;

export type FindingName = keyof typeof findings;
