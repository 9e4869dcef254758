import { createHmac, createSecretKey, hkdfSync, timingSafeEqual } from 'node:crypto';
import { checkOptionMembers } from '../option-members.ts';

/** Validity of a nonce: from this time step, from the previous one, or invalid. */
export type NonceVerdict = 'current' | 'previous' | 'invalid';

/** Nonces of one secret (RFC 9449 §8, §9): nothing is stored, and instances that share the secret know each other's. */
export interface Nonces {
  /**
   * Issues a nonce for the second `now` (since the epoch). `generation` is the replay store's, a whole number below 2^32: the
   * nonce proves that it was issued after the store began that generation.
   */
  issue(now: number, generation?: number): string;
  /** Checks a nonce at `now` (seconds); a client that sent the previous one should be given the current. */
  check(nonce: string, now: number): NonceVerdict;
  /** Reads a nonce that is valid at `now` (seconds); `undefined` for every other. */
  read(nonce: string, now: number): NonceOrigin | undefined;
}

/** Time and generation of a nonce. */
export interface NonceOrigin {
  /** Seconds since the epoch, by the clock of the instance that issued it. */
  readonly issuedAt: number;
  /** Generation of the issuing instance's replay store. */
  readonly generation: number;
}

/** Options of {@link createNonces}. */
export interface NonceOptions {
  /** At least 32 bytes, from a random source; the same for all instances. */
  readonly secret: string | Uint8Array;
  /** Seconds of one time step; a nonce is good for one to two of them. Default 120. */
  readonly stepSeconds?: number;
}

const minSecretBytes = 32;
/** Second and generation, 32 bits each. */
const originBytes = 8;
const macBytes = 16;
/** 32 characters of base64url, without padding. */
const nonceGrammar = /^[\w-]{32}$/;

/** Creates stateless nonces. Throws `TypeError` for a short secret or a step that is not a positive number. */
export function createNonces(options: NonceOptions): Nonces {
  checkOptionMembers<NonceOptions>('createNonces', options, { secret: true, stepSeconds: true });
  const { secret, stepSeconds = 120 } = options;
  const isSecret = typeof secret === 'string' || ArrayBuffer.isView(secret);
  const bytes = Buffer.from(isSecret ? secret : '');
  if (bytes.length < minSecretBytes) throw new TypeError('secret: write at least 32 bytes');
  if (!(stepSeconds > 0 && stepSeconds < Number.POSITIVE_INFINITY)) {
    throw new TypeError('stepSeconds: write a number of seconds above 0');
  }
  // A derived key (RFC 5869): the secret may serve other purposes, and may be a string of uneven strength. Nonces with
  // another step length have another key.
  const key = createSecretKey(
    Buffer.from(hkdfSync('sha256', bytes, '', `portcullis DPoP nonce 2, steps of ${stepSeconds} s`, 32)),
  );
  const sign = (origin: Buffer): Buffer => createHmac('sha256', key).update(origin).digest().subarray(0, macBytes);
  const stepOf = (seconds: number): number => Math.floor(seconds / stepSeconds);
  let latest = { second: -1, generation: 0, nonce: '' };

  const read = (nonce: string): NonceOrigin | undefined => {
    if (!nonceGrammar.test(nonce)) return undefined;
    const given = Buffer.from(nonce, 'base64url');
    // In constant time: how long it takes tells nothing of a right nonce.
    if (!timingSafeEqual(given.subarray(originBytes), sign(given.subarray(0, originBytes)))) return undefined;
    return { issuedAt: given.readUInt32BE(0), generation: given.readUInt32BE(4) };
  };
  const judge = ({ issuedAt }: NonceOrigin, now: number): NonceVerdict => {
    const age = stepOf(now) - stepOf(issuedAt);
    if (age === 0) return 'current';
    return age === 1 ? 'previous' : 'invalid';
  };

  return {
    issue(now, generation = 0) {
      const second = Math.floor(now);
      // The nonces of one second are the same for every client, so they are computed once.
      if (second !== latest.second || generation !== latest.generation) {
        const origin = Buffer.alloc(originBytes);
        origin.writeUInt32BE(second, 0);
        origin.writeUInt32BE(generation, 4);
        latest = { second, generation, nonce: Buffer.concat([origin, sign(origin)]).toString('base64url') };
      }
      return latest.nonce;
    },
    check(nonce, now) {
      const origin = read(nonce);
      return origin === undefined ? 'invalid' : judge(origin, now);
    },
    read(nonce, now) {
      const origin = read(nonce);
      return origin === undefined || judge(origin, now) === 'invalid' ? undefined : origin;
    },
  };
}

/** Returns the time and generation in a nonce, unverified: two nonces of one secret with equal contents are equal. */
export function readNonceClaim(nonce: string): string {
  return Buffer.from(nonce, 'base64url').subarray(0, originBytes).toString('hex');
}
