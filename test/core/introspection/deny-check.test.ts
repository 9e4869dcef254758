import { describe, expect, it } from 'vitest';
import { AccessError } from '../../../src/core/failures.ts';
import { createRefuseDenied } from '../../../src/core/introspection/deny-list.ts';

const claims = { sub: 'alice' };

describe('a custom deny list', () => {
  it.each<[string, () => unknown, string]>([
    ['false', () => false, 'allowed'],
    ['true', () => true, 'revoked_token'],
    ['a promise of false', async () => false, 'allowed'],
    ['a promise of true', async () => true, 'revoked_token'],
    // biome-ignore lint/suspicious/noThenProperty: what some database clients answer with
    ['what can be awaited, false', () => ({ then: (next: (value: unknown) => void) => next(false) }), 'allowed'],
    ['nothing', () => undefined, 'deny_list_unavailable'],
    ['a promise of nothing', async () => undefined, 'deny_list_unavailable'],
    ['0', () => 0, 'deny_list_unavailable'],
    ['null', () => null, 'deny_list_unavailable'],
    ['an empty text', () => '', 'deny_list_unavailable'],
    ['a promise of 1', async () => 1, 'deny_list_unavailable'],
    [
      'a throw',
      () => {
        throw new Error('no connection');
      },
      'deny_list_unavailable',
    ],
    ['a rejection', () => Promise.reject(new Error('no connection')), 'deny_list_unavailable'],
  ])('%s → %3$s', async (_name, denies, outcome) => {
    const refuse = createRefuseDenied({ denies: denies as () => boolean }); // as from code without types
    const refusal = await refuse(claims, 'kid');
    expect(refusal === undefined ? 'allowed' : refusal.reason).toBe(outcome);
  });

  it('a failure is the cause of the refusal', async () => {
    const cause = new Error('no connection');
    const refusal = await createRefuseDenied({ denies: () => Promise.reject(cause) })(claims, 'kid');
    expect(refusal).toBeInstanceOf(AccessError);
    expect(refusal?.cause).toBe(cause);
    expect(refusal?.failure.status).toBe(503);
  });

  it('a synchronous result → no promise', () => {
    expect(createRefuseDenied({ denies: () => false })(claims, 'kid')).toBeUndefined();
    expect(createRefuseDenied({ denies: () => true })(claims, 'kid')).toMatchObject({ reason: 'revoked_token' });
  });
});
