import type { JsonObject } from '../jose/json.ts';
import { signCompact } from '../jose/sign.ts';
import type { KeyPair } from './key-ring.ts';

export interface Change {
  /** Members merged over the header; `undefined` omits one. */
  readonly header?: JsonObject;
  /** Members merged over the claims; `undefined` omits one. */
  readonly claims?: JsonObject;
  /** Signs instead of the right key. */
  readonly key?: KeyPair;
  readonly finish?: (jws: string) => string;
}

/** Header, claims and key before any change. */
export interface Draft {
  readonly header: JsonObject;
  readonly claims: JsonObject;
  readonly key: KeyPair;
}

/** Seconds; above the clock tolerance of any configuration. */
export const hour = 3600;

export function signChanged({ header, claims, key }: Draft, change: Change): string {
  const { finish = (jws) => jws } = change;
  return finish(signCompact({ ...header, ...change.header }, { ...claims, ...change.claims }, change.key ?? key));
}

/** Finds a flaw in its table. Throws `TypeError` for an unknown one: tests are often written without types. */
export function findFlaw<T extends object, F extends keyof T>(table: T, flaw: F): T[F] {
  if (!Object.hasOwn(table, flaw)) throw new TypeError(`flaw: write any of ${Object.keys(table).join(', ')}`);
  return table[flaw];
}

export function listFlaws<T extends object>(table: T): readonly (keyof T)[] {
  return Object.keys(table) as (keyof T)[]; // the tables are literals, so their types state all keys
}

export function cutSignature(jws: string): string {
  return jws.slice(0, jws.lastIndexOf('.'));
}

/** Inverts one bit of the signature of a JWS. */
export function spoilSignature(jws: string): string {
  const start = jws.lastIndexOf('.') + 1;
  const signature = Buffer.from(jws.slice(start), 'base64url');
  signature.writeUInt8(signature.readUInt8() ^ 1);
  return `${jws.slice(0, start)}${signature.toString('base64url')}`;
}
