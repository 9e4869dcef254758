import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { checkOptionMembers } from '../option-members.ts';

/** What a nonce is worth: of this time step, of the one before, or none of ours. */
export type NonceVerdict = 'current' | 'previous' | 'invalid';

/** Nonces of one secret (RFC 9449 §8, §9): nothing is stored, and instances that share the secret know each other's. */
export interface Nonces {
  /** The nonce of the time step that `now` (seconds) falls in. */
  issue(now: number): string;
  /** Judges a nonce at `now` (seconds); a client that sent the previous one should be given the current. */
  check(nonce: string, now: number): NonceVerdict;
}

/** Options of {@link createNonces}. */
export interface NonceOptions {
  /** At least 32 bytes, from a random source; the same for all instances. */
  readonly secret: string | Uint8Array;
  /** Seconds of one time step; a nonce is good for one to two of them. Default 120. */
  readonly stepSeconds?: number;
}

interface Step {
  readonly number: number;
  readonly current: Buffer;
  readonly previous: Buffer;
}

const minSecretBytes = 32;
/** 144 bits: 24 characters of base64url, without padding. */
const nonceBytes = 18;

/** Creates stateless nonces. Throws `TypeError` for a short secret or a step that is no positive number. */
export function createNonces(options: NonceOptions): Nonces {
  checkOptionMembers<NonceOptions>('createNonces', options, { secret: true, stepSeconds: true });
  const { secret, stepSeconds = 120 } = options;
  const bytes = Buffer.from(secret);
  if (bytes.length < minSecretBytes) throw new TypeError('secret: write at least 32 bytes');
  if (!(stepSeconds > 0 && stepSeconds < Number.POSITIVE_INFINITY)) {
    throw new TypeError('stepSeconds: write a number of seconds above 0');
  }
  // A key of its own (RFC 5869): the secret may serve other purposes, and may be text of uneven strength.
  const key = Buffer.from(hkdfSync('sha256', bytes, '', 'portcullis DPoP nonce', 32));

  const make = (step: number): Buffer => {
    const text = createHmac('sha256', key).update(`${stepSeconds}:${step}`).digest().subarray(0, nonceBytes);
    return Buffer.from(text.toString('base64url'));
  };
  const makeStep = (number: number): Step => ({ number, current: make(number), previous: make(number - 1) });
  let latest = makeStep(0);
  // The nonces of one step are the same for everybody: they are made once.
  const stepAt = (now: number): Step => {
    const number = Math.floor(now / stepSeconds);
    if (number !== latest.number) latest = makeStep(number);
    return latest;
  };

  return {
    issue: (now) => stepAt(now).current.toString('latin1'),
    check(nonce, now) {
      const { current, previous } = stepAt(now);
      const given = Buffer.from(nonce);
      if (given.length !== current.length) return 'invalid';
      // Both are compared, each in constant time: how long it takes tells nothing of a right nonce.
      const isCurrent = timingSafeEqual(given, current);
      const isPrevious = timingSafeEqual(given, previous);
      if (isCurrent) return 'current';
      return isPrevious ? 'previous' : 'invalid';
    },
  };
}
