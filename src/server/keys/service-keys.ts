import type { Jwks } from '../../keys/jwks.ts';
import type { KeySet } from '../../keys/key-set.ts';
import type { FetchedKeys } from '../../keys/key-set-options.ts';

export interface KeyPlace {
  readonly jwksUri?: string | undefined;
  readonly insecure?: boolean | undefined;
}

/** The keys of one issuer, fetched by this process or by another one. */
export interface ServiceKeys {
  readonly issuer: string;
  readonly set: KeySet;
  algorithms(): ReadonlySet<string>;
  /** Cause of the last failed fetch; `undefined` after a successful one. */
  problem(): string | undefined;
  /** Starts a fetch. A failure is logged and retried. */
  fetch(): void;
}

export interface KeySource {
  /** Rejects with `StartFailure` if the variant does not start without keys, and there are none. */
  open(issuer: string, place?: KeyPlace): Promise<ServiceKeys>;
}

/** Describes the keys for `/readyz`: `ok`, or the reason that no token with an enabled algorithm can be validated. */
export function describeReadyKeys(keys: ServiceKeys, enabled: readonly string[]): string {
  if (!keys.set.usable()) return `none: ${keys.problem() ?? 'not fetched yet'}`;
  const published = keys.algorithms();
  if (enabled.some((alg) => published.has(alg))) return 'ok';
  return `none: the published keys are for ${[...published].join(', ')}, and ${enabled.join(', ')} is enabled`;
}

export function collectAlgorithms({ keys }: Pick<Jwks, 'keys'>): ReadonlySet<string> {
  return new Set([...keys.values()].flatMap(({ algs }) => [...algs]));
}

/** Names a key set by its issuer and location. No URL has a space. */
export function nameKeys(issuer: string, { jwksUri, insecure }: KeyPlace = {}): string {
  return [issuer, ...(jwksUri === undefined ? [] : [jwksUri]), ...(insecure === true ? ['insecure'] : [])].join(' ');
}

/** State of a key set, as plain data for other processes. */
export interface KeyNews {
  /** `undefined` if the keys have not changed. */
  readonly fetched: FetchedKeys | undefined;
  readonly generation: number;
  /** Successful fetches. A process that knows of fewer has older keys. */
  readonly fetches: number;
  /** Seconds for which the keys can be used without further news. */
  readonly usableSeconds: number;
  readonly problem: string | undefined;
}
