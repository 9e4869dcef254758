import { createHmac, hkdfSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createNonces } from '../../../src/core/dpop/nonce.ts';

const secret = 'a secret of thirty-two characters';
const now = 1_700_000_040;
const step = 120;
const nonces = createNonces({ secret });
const current = nonces.issue(now);

describe('a nonce', () => {
  it.each([
    ['at once', 'current', 0],
    ['at the end of its step', 'current', step - 1 - (now % step)],
    ['at the start of its step', 'current', -(now % step)],
    ['in the next step', 'previous', step],
    ['at the end of the next step', 'previous', 2 * step - 1 - (now % step)],
    ['two steps later', 'invalid', 2 * step - (now % step)],
    ['a step before it was issued', 'invalid', -step],
    ['a day later', 'invalid', 86_400],
  ])('%s → %s', (_name, verdict, later) => expect(nonces.check(current, now + later)).toBe(verdict));

  it.each([
    ['nothing', ''],
    ['one character less', current.slice(1)],
    ['one character more', `${current}A`],
    ['its last character changed', `${current.slice(0, -1)}${current.endsWith('A') ? 'B' : 'A'}`],
    ['its first character changed', `${current.startsWith('A') ? 'B' : 'A'}${current.slice(1)}`],
    ['other case', current.replace(/[a-z]/g, (letter) => letter.toUpperCase())],
    ['as many characters, more bytes', 'é'.repeat(current.length)],
    ['as many bytes, fewer characters', 'é'.repeat(current.length / 2)],
    ['of another secret', createNonces({ secret: `${secret}!` }).issue(now)],
    ['of steps of another length', createNonces({ secret, stepSeconds: 60 }).issue(now)],
  ])('%s → invalid', (_name, nonce) => expect(nonces.check(nonce, now)).toBe('invalid'));

  it('of another instance with the same secret → current', () =>
    expect(createNonces({ secret: Buffer.from(secret) }).check(current, now + 1)).toBe('current'));

  it('of another release with the same secret → the same', () => {
    const key = Buffer.from(hkdfSync('sha256', secret, '', `portcullis DPoP nonce 2, steps of ${step} s`, 32));
    const origin = Buffer.from([now >>> 24, now >>> 16, now >>> 8, now, 0, 0, 0, 7]);
    const mac = createHmac('sha256', key).update(origin).digest().subarray(0, 16);
    expect(nonces.issue(now, 7)).toBe(Buffer.concat([origin, mac]).toString('base64url'));
  });

  it('fits a header and a JSON string unchanged', () => expect(current).toMatch(/^[\w-]{32}$/));

  it('is the same within a second and a generation, and the same again for a clock set back', () => {
    expect(nonces.issue(now + 0.9)).toBe(current);
    expect(nonces.issue(now + 1)).not.toBe(current);
    expect(nonces.issue(now, 1)).not.toBe(current);
    expect(nonces.issue(now)).toBe(current);
  });

  it('returns the time and the generation while it is valid', () => {
    const nonce = nonces.issue(now + 0.9, 4_294_967_295);
    expect(nonces.read(nonce, now + step)).toEqual({ issuedAt: now, generation: 4_294_967_295 });
    expect(nonces.read(nonce, now + 3 * step)).toBeUndefined();
    expect(nonces.read(`${nonce.slice(0, 4)}AA${nonce.slice(6)}`, now)).toBeUndefined();
  });

  it('of steps of ten seconds → current, previous, invalid', () => {
    const short = createNonces({ secret, stepSeconds: 10 });
    const nonce = short.issue(1_000);
    const verdicts = [1_009.9, 1_010, 1_019.9, 1_020].map((seconds) => short.check(nonce, seconds));
    expect(verdicts).toEqual(['current', 'previous', 'previous', 'invalid']);
  });
});

describe('options that cannot work', () => {
  const seconds = 'stepSeconds: write a number of seconds above 0';

  it.each([
    ['a short secret', 'secret: write at least 32 bytes', { secret: 'x'.repeat(31) }],
    ['a secret of few bytes', 'secret: write at least 32 bytes', { secret: new Uint8Array(31) }],
    [
      'an object, whose 32 bytes would be zeros',
      'secret: write at least 32 bytes',
      { secret: { length: 32 } as Uint8Array },
    ],
    ['no seconds', seconds, { secret, stepSeconds: 0 }],
    ['seconds below 0', seconds, { secret, stepSeconds: -1 }],
    ['endless seconds', seconds, { secret, stepSeconds: Number.POSITIVE_INFINITY }],
    ['no number', seconds, { secret, stepSeconds: Number.NaN }],
  ])('%s → TypeError: %s', (_name, message, options) =>
    expect(() => createNonces(options)).toThrow(new TypeError(message)),
  );

  it('a secret of 32 bytes in fewer characters → enough', () =>
    expect(createNonces({ secret: 'é'.repeat(16) }).issue(now)).toHaveLength(32));
});
