import { isJsonObject } from '../jose/json.ts';
import { importJwk, type JwkDefect, type JwkFlaw, type VerificationKey } from '../jose/jwk.ts';
import { isKid } from '../jose/jws.ts';
import { ProviderError } from '../outbound/provider-error.ts';
import { showText } from '../shown-text.ts';

/** A published key that is not used. */
export interface DroppedKey extends JwkFlaw<JwkDefect | 'no_kid'> {
  /** Published `kid`; `undefined` if it is absent, or is not a string of 1 to 256 characters. */
  readonly kid: string | undefined;
}

/** A key set (RFC 7517 §5), read. */
export interface Jwks {
  /** Usable keys by `kid`, which several may share (RFC 7517 §4.5). */
  readonly keys: ReadonlyMap<string, readonly VerificationKey[]>;
  /** Every `kid` that is published, usable or not. */
  readonly published: ReadonlySet<string>;
  readonly dropped: readonly DroppedKey[];
  /** The usable keys in published form. */
  readonly entries: readonly object[];
}

export function showDropped({ kid, why, member }: DroppedKey): string {
  const reason = `${why.replaceAll('_', ' ')}${member === undefined ? '' : ` (${member})`}`;
  return `${kid === undefined ? 'without kid' : showText(kid, 24)} is not used: ${reason}`;
}

const maxKeys = 100;

/** Reads a key set: broken keys are dropped one by one; one with no array of keys, or too many, is a `ProviderError`. */
export function readJwks({ keys: entries }: { readonly keys?: unknown }): Jwks {
  if (!Array.isArray(entries)) throw new ProviderError('not_a_key_set');
  if (entries.length > maxKeys) throw new ProviderError('too_many_keys', { detail: String(entries.length) });
  const keys = new Map<string, VerificationKey[]>();
  const published = new Set<string>();
  const dropped: DroppedKey[] = [];
  const used: object[] = [];
  for (const entry of entries) {
    const kid = isJsonObject(entry) && isKid(entry['kid']) ? entry['kid'] : undefined;
    const key = importJwk(entry);
    if (kid !== undefined) published.add(kid);
    if ('why' in key) dropped.push({ kid, ...key });
    else if (kid === undefined) dropped.push({ kid, why: 'no_kid', member: 'kid' });
    else {
      keys.set(kid, [...(keys.get(kid) ?? []), key]);
      used.push(entry);
    }
  }
  return { keys, published, dropped, entries: used };
}

/** Returns the algorithms that the usable keys of a set can verify. */
export function readAlgs(keys: readonly object[]): ReadonlySet<string> {
  return new Set([...readJwks({ keys }).keys.values()].flat().flatMap(({ algs }) => [...algs]));
}
