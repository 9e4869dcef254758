import type { KeySet } from '../../core/keys/key-set.ts';

export interface KeyPlace {
  readonly jwksUri?: string | undefined;
  readonly insecure?: boolean | undefined;
}

/** The keys of one issuer. */
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

/** Names a key set by its issuer and location. No URL has a space. */
export function nameKeys(issuer: string, { jwksUri, insecure }: KeyPlace = {}): string {
  return [issuer, ...(jwksUri === undefined ? [] : [jwksUri]), ...(insecure === true ? ['insecure'] : [])].join(' ');
}
