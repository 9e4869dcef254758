import type { JsonObject } from '../jose/json.ts';
import { signCompact } from '../jose/sign.ts';
import type { KeyPair } from './signing.ts';

/** How a JWS differs from a good one. */
export interface Change {
  /** Members laid over the header; one that is `undefined` is left out. */
  readonly header?: JsonObject;
  /** Members laid over the claims; one that is `undefined` is left out. */
  readonly claims?: JsonObject;
  /** Signs in the place of the key that should. */
  readonly key?: KeyPair;
  /** Last change to the signed text. */
  readonly finish?: (text: string) => string;
}

/** What is signed, and with what, before any change. */
export interface Draft {
  readonly header: JsonObject;
  readonly claims: JsonObject;
  readonly key: KeyPair;
}

/** Seconds: more than clocks may differ by in any configuration. */
export const hour = 3600;

/** Signs a draft with its change. */
export function signChanged({ header, claims, key }: Draft, change: Change): string {
  const { finish = (text) => text } = change;
  return finish(signCompact({ ...header, ...change.header }, { ...claims, ...change.claims }, change.key ?? key));
}

/** Looks a flaw up in its table. Throws `TypeError` for one that has no row: tests are often written without types. */
export function findFlaw<T extends object, F extends keyof T>(table: T, flaw: F): T[F] {
  if (!Object.hasOwn(table, flaw)) throw new TypeError(`flaw: write any of ${Object.keys(table).join(', ')}`);
  return table[flaw];
}

/** The flaws of a table. */
export function listFlaws<T extends object>(table: T): readonly (keyof T)[] {
  return Object.keys(table) as (keyof T)[]; // the tables are literals: no keys but those of their types
}

/** A JWS without its last part. */
export function cutSignature(text: string): string {
  return text.slice(0, text.lastIndexOf('.'));
}

/** A JWS with one bit of its signature turned. */
export function spoilSignature(text: string): string {
  const start = text.lastIndexOf('.') + 1;
  const signature = Buffer.from(text.slice(start), 'base64url');
  signature.writeUInt8(signature.readUInt8() ^ 1);
  return `${text.slice(0, start)}${signature.toString('base64url')}`;
}
