import { type Facts, optionLabels, type SettingLabels } from '../../explain/facts.ts';
import type { Reason } from '../../failures.ts';

type Fields = Readonly<Record<string, unknown>>;
type Part = (value: unknown) => Partial<Facts['seen']>;

const claim =
  (name: string, read: (value: unknown) => unknown = (value) => value): Part =>
  (value) => ({ claims: { [name]: read(value) } });

/** Where the value stood that a log line has received, by the reason. Causes of other reasons need more than one value. */
const parts: Readonly<Partial<Record<Reason, Part>>> = {
  invalid_issuer: claim('iss'),
  invalid_audience: claim('aud'),
  insufficient_scope: claim('scope', (value) => (Array.isArray(value) ? value.join(' ') : value)),
  unsupported_alg: (value) => ({ header: { alg: value } }),
  expired: claim('exp', readTime),
  not_yet_valid: claim('nbf', readTime),
  issued_in_future: claim('iat', readTime),
  proof_too_old: (value) => ({ proofClaims: { iat: readTime(value) } }),
  proof_in_future: (value) => ({ proofClaims: { iat: readTime(value) } }),
  proof_url_mismatch: (value) => ({ proofClaims: { htu: value } }),
};

/** What a log line tells of a call, for the causes; `undefined` if that is not enough to tell any. */
export function readLogFacts(reason: Reason, fields: Fields, labels: SettingLabels = optionLabels): Facts | undefined {
  const received = parse(fields['received']);
  const part = Object.hasOwn(parts, reason) ? parts[reason] : undefined;
  if (part === undefined || received === undefined || received === 'absent') return undefined;
  const expected = [parse(fields['expected'])].flat().filter((each): each is string => typeof each === 'string');
  const of = (...reasons: readonly Reason[]): readonly string[] => (reasons.includes(reason) ? expected : []);
  const isUrl = reason === 'proof_url_mismatch';
  return {
    seen: {
      ...{ kind: 'log-line', authorization: null, token: '', url: undefined, cookie: null, otherHeaders: [] },
      ...{ header: {}, claims: {}, proofClaims: {} },
      ...part(received),
    },
    force: {
      issuers: of('invalid_issuer'),
      audiences: of('invalid_audience'),
      algorithms: of('unsupported_alg'),
      scopes: of('insufficient_scope'),
      permissions: [],
      mode: 'allowed',
      domainHasScheme: false,
      labels,
    },
    externalUrl: isUrl ? expected[0] : undefined,
    pinnedUrl: isUrl ? readPinned(fields['hint']) : undefined,
    now: readNow(fields['time']),
  };
}

/** On a terminal a list stands as JSON. */
function parse(value: unknown): unknown {
  if (typeof value !== 'string' || !value.startsWith('[')) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/** Seconds since the epoch, of a time as the log writes it: with its distance behind it. */
function readTime(value: unknown): number | undefined {
  const seconds = Date.parse(String(value).replace(/ .*$/, '')) / 1000;
  return Number.isNaN(seconds) ? undefined : seconds;
}

/** A line from a terminal has only the time of the day. */
function readNow(time: unknown): number {
  const seconds = Date.parse(String(time)) / 1000;
  return Number.isNaN(seconds) ? Date.now() / 1000 : seconds;
}

/** The hint names what the URL is pinned to, behind the name of the setting. */
function readPinned(hint: unknown): string | undefined {
  return /^\w+ is (https?:\/\/\S+)$/.exec(typeof hint === 'string' ? hint : '')?.[1];
}
