import { readAlgs } from '../../core/keys/jwks.ts';
import type { ManagedKeySet } from '../../core/keys/key-set.ts';

export interface KeyPlace {
  readonly jwksUri?: string | undefined;
  readonly insecure?: boolean | undefined;
}

/** The keys of one issuer. */
export interface ServiceKeys {
  readonly issuer: string;
  readonly set: ManagedKeySet;
}

export interface KeySource {
  /** Rejects with `StartFailure` if the variant does not start without keys, and there are none. */
  open(issuer: string, place?: KeyPlace): Promise<ServiceKeys>;
}

/** Describes the keys for `/readyz`: `ok`, or the reason that no token with an enabled algorithm can be validated. */
export function describeReadyKeys({ set }: ServiceKeys, enabled: readonly string[]): string {
  if (!set.usable()) return `none: ${set.status().lastError?.message ?? 'not fetched yet'}`;
  const published = readAlgs(set.fetched()?.keys ?? []);
  if (enabled.some((alg) => published.has(alg))) return 'ok';
  return `none: the published keys are for ${[...published].join(', ')}, and ${enabled.join(', ')} is enabled`;
}

/** Names a key set by its issuer and location. No URL has a space. */
export function nameKeys(issuer: string, { jwksUri, insecure }: KeyPlace = {}): string {
  return [issuer, ...(jwksUri === undefined ? [] : [jwksUri]), ...(insecure === true ? ['insecure'] : [])].join(' ');
}
