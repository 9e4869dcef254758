import type { KeySet } from '../../keys/key-set.ts';
import type { FetchedKeys } from '../../keys/key-set-options.ts';

/** Where the keys of an issuer are, if the issuer does not say it by discovery over https. */
export interface KeyPlace {
  readonly jwksUri?: string | undefined;
  readonly insecure?: boolean | undefined;
}

/** The keys of one issuer as the service uses them, whether this process fetches them or another. */
export interface ServiceKeys extends KeySet {
  readonly issuer: string;
  /** Why the last fetch failed; `undefined` when it did not. */
  problem(): string | undefined;
  /** Begins to fetch. A failure is logged, and tried again. */
  fetch(): void;
}

/** Where the service has its keys from. */
export interface KeySource {
  /** Rejects with `StartFailure` if the variant does not start without keys, and there are none. */
  open(issuer: string, place?: KeyPlace): Promise<ServiceKeys>;
  close(): Promise<void>;
}

/** One name for each issuer and place: what was fetched from one is not taken for that of another. No URL has a space. */
export function nameKeys(issuer: string, { jwksUri, insecure }: KeyPlace = {}): string {
  return [issuer, ...(jwksUri === undefined ? [] : [jwksUri]), ...(insecure === true ? ['insecure'] : [])].join(' ');
}

/** What the owner of the keys tells those who follow it. Plain data. */
export interface KeyNews {
  /** `undefined` if it is the set that was told before. */
  readonly fetched: FetchedKeys | undefined;
  readonly generation: number;
  /** How many fetches have succeeded: who has seen fewer has older keys. */
  readonly fetches: number;
  /** Seconds for which the keys can be used if nothing else is heard. */
  readonly usableSeconds: number;
  readonly problem: string | undefined;
}
