import { showText } from '../../core/shown-text.ts';

/** Result of a check. `skipped`: it did not run. `unknown`: it crashed. */
export type Level = 'ok' | 'warn' | 'fail' | 'skipped' | 'unknown';

export interface Finding {
  readonly check: string;
  readonly level: Level;
  readonly code?: Code;
  /** Observation, or the reason for `skipped`. */
  readonly seen: string;
  readonly expected?: string;
  readonly fix?: string;
  /** Page and anchor, below `docs/`. */
  readonly docs?: string;
}

export type Outcome = Omit<Finding, 'check'>;

interface Problem {
  readonly seen: string;
  readonly expected?: string | undefined;
  readonly fix: string;
}

const maxLength = 300;

export const ok = (seen: string): Outcome => ({ level: 'ok', seen: showText(seen, maxLength) });
export const skipped = (reason: string): Outcome => ({ level: 'skipped', seen: showText(reason, maxLength) });

export function problem(code: Code, { seen, expected, fix }: Problem): Outcome {
  return {
    level: findingCodes[code].level,
    code,
    seen: showText(seen, maxLength),
    ...(expected !== undefined && { expected: showText(expected, maxLength) }),
    fix: showText(fix, maxLength),
    docs: `doctor.md#${code.toLowerCase()}`,
  };
}

const fail = (meaning: string) => ({ level: 'fail', meaning }) as const;
const warn = (meaning: string) => ({ level: 'warn', meaning }) as const;

/** All codes. A code never gets another meaning, and is never used again after its removal. */
export const findingCodes = {
  D100: fail('The provider is unreachable: it is down, or the address or the port is wrong.'),
  D101: fail('The outbound proxy is unreachable.'),
  D102: fail('The provider does not return a discovery document.'),
  D103: fail('The discovery document has another issuer, such as an internal or public name of the provider.'),
  D104: fail('The issuer of the provider differs from the setting only by the trailing slash.'),
  D105: fail('The domain is set with https://, so every token is refused.'),
  D106: fail('The provider limits requests or fails: it responds with 429 or a status from 500.'),
  D110: fail('The certificate chain of the provider ends in an authority that this host does not trust.'),
  D111: fail('The certificate of the provider is for another name.'),
  D112: fail('The certificate of the provider has expired, or is not valid yet.'),
  D113: fail('The port of the provider speaks plain HTTP.'),
  D120: fail('The clocks of this host and of the provider differ by more than the clock tolerance.'),
  D130: fail('The service sees another URL than its clients: forwarded headers are missing or not trusted.'),
  D131: fail('The service is unreachable under the URL of its clients.'),
  D132: fail('The URL needs no token, or another server responds.'),
  D133: fail('The URL begins with https, and the port speaks plain HTTP.'),
  D134: fail('The proxy strips a path prefix, and the service does not know it.'),
  D140: fail('An instance does not know the nonces of another: their secrets differ.'),
  D141: fail('An instance is unreachable.'),
  D142: fail('Instances have different audiences.'),
  D150: fail('Redis is unreachable.'),
  D151: fail('Redis refuses the user or the password.'),
  D152: fail('Redis is a cluster, and the URL is for a single server.'),
  D153: warn('Redis may evict used proofs when its memory is full.'),
  D154: fail('The client for Redis is not installed.'),
  D155: fail('Redis refuses writes: it is a read-only replica, or cannot save its data.'),
  D156: fail('Redis is out of memory.'),
  D157: fail('The user of Redis may not run the commands of the replay store.'),
  D158: fail('Redis has too many clients.'),
  D159: fail('Redis responds more slowly than REPLAY_TIMEOUT.'),
  D160: warn('Browsers cannot send requests: no origin is allowed.'),
  D161: fail('The response to the preflight of an allowed origin is wrong.'),
  D162: fail('The proxy cannot pass a preflight to the service.'),
  D170: fail('A proxy removes the Authorization header.'),
  D171: fail('A proxy removes the DPoP header.'),
  D180: fail('Two instances accepted one proof: their replay store is not shared.'),
  D190: fail('The admin listener is reachable from outside.'),
  D200: fail('The jwks_uri of the provider is not an https URL.'),
  D201: fail('The key set of the provider cannot be fetched.'),
  D202: fail('The provider publishes no key that an enabled algorithm can use.'),
  D203: warn('A published key is not used.'),
  D210: fail('The rules of the gate are not valid.'),
  D211: warn('No request can reach a rule: more specific rules match all of them, or the gate refuses its path.'),
  D220: fail('The certificate of the service has expired, or is not valid yet.'),
  D221: fail('The certificate of the service does not match its key.'),
  D222: fail('A TLS file of the service is missing, unreadable or not PEM.'),
  D223: fail('The certificate of the service is for another name.'),
  D224: warn('The certificate of the service expires within 14 days.'),
  D230: fail('Another process uses a port of the service.'),
  D231: fail('The service cannot listen on an address.'),
  D240: fail('The upstream of the gate is unreachable.'),
  D250: fail('The key cache cannot be written: its folder is missing or read-only.'),
  D260: fail('The store of cutoffs is unreachable.'),
  D261: warn('Redis may evict cutoffs when its memory is full.'),
  D262: warn('Access tokens have no sid, so a logout of a session does not end them.'),
  D263: warn('The running service reports the store of cutoffs or a stream as degraded.'),
} as const;

export type Code = keyof typeof findingCodes;
