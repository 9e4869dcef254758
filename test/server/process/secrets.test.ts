import { describe, expect, it } from 'vitest';
import { createNonces } from '../../../src/core/dpop/nonce.ts';
import { createRotatingNonces } from '../../../src/server/process/secrets.ts';

const [first, second] = ['first-secret-of-at-least-32-bytes!', 'second-secret-of-at-least-32-bytes'] as const;

describe('nonces whose secret is replaced', () => {
  it('nonces under the previous secret are accepted for a while, and get a new one', () => {
    let now = 1000;
    const nonces = createRotatingNonces(first, () => now);
    const old = nonces.issue(now);
    nonces.rotate(second);
    expect(nonces.issue(now)).toBe(createNonces({ secret: second }).issue(now));
    expect(nonces.check(old, now)).toBe('previous');
    expect(nonces.check(nonces.issue(now), now)).toBe('current');
    now += 240;
    // Whoever knows the secret before could still make nonces of this moment.
    expect(nonces.check(createNonces({ secret: first }).issue(now), now)).toBe('invalid');
  });

  it('the same secret again, or a short one → nothing changes', () => {
    const nonces = createRotatingNonces(first);
    nonces.rotate(first);
    expect(() => nonces.rotate('short')).toThrow(TypeError);
    expect(nonces.check(nonces.issue(1000), 1000)).toBe('current');
  });
});
