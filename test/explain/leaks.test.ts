import { describe, expect, it } from 'vitest';
import { findLeaks } from '../support/leaks.ts';

const secret = '0123456789abcdefghijklmnopqrstuvwxyzABCD';

describe('tools of the leak tests', () => {
  it('any 16 characters of a secret, in one of two outputs → found', () => {
    for (let at = 0; at <= secret.length - 16; at++) {
      const part = secret.slice(at, at + 16);
      expect(findLeaks(['other secret text', secret], ['nothing', `before ${part} after`])).toEqual([part]);
    }
  });

  it('15 characters, or a secret that is shorter → not found', () => {
    const outputs = [secret.slice(3, 18), 'short', ''];
    expect(findLeaks([secret, 'short', 'short'.repeat(3)], outputs)).toEqual([]);
  });
});
