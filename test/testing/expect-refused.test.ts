import { AssertionError } from 'node:assert';
import { describe, expect, it } from 'vitest';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { createTestIssuer, expectRefused, tokenFlaws } from '../../src/testing/index.ts';

const issuer = createTestIssuer();
const server = createResourceServer({ issuers: [issuer], audience: issuer.audience });
const url = 'https://api.test/messages';
const policy = { scopes: ['read:messages'] };
const call = (token: string) => new Request(url, { headers: { authorization: `Bearer ${token}` } });
const failureOf = (asserted: Promise<unknown>): Promise<unknown> =>
  asserted.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('expectRefused', () => {
  it.each(tokenFlaws)('%s → resolves with the refusal', async (flaw) =>
    expect(await expectRefused(server, call(issuer.flawed(flaw)), flaw)).toMatchObject({ reason: flaw }),
  );

  it('with a policy → its requirements are checked', () =>
    expectRefused(server, call(issuer.token({ scope: 'openid' })), 'insufficient_scope', { policy }));

  it('another reason → the message explains the request, and has no token', async () => {
    const token = issuer.token({ aud: 'https://api.test' });
    const failure = await failureOf(expectRefused(server, call(token), 'expired', { policy }));
    expect(failure).toBeInstanceOf(AssertionError);
    expect(failure).toMatchObject({ actual: 'invalid_audience', expected: 'expired', operator: 'expectRefused' });
    const { message } = failure as AssertionError; // as just seen
    expect(message).toContain('The request should be refused as expired; it was refused as invalid_audience.');
    expect(message).toMatch(/aud is +https:\/\/api\.test$/m);
    expect(message).toMatch(/expects +https:\/\/api\.test\/ /);
    for (const part of token.split('.')) expect(message).not.toContain(part.slice(0, 20));
  });

  it('admitted → the message states it, with every check', async () => {
    const failure = await failureOf(expectRefused(server, call(issuer.token({ scope: 'read:messages' })), 'expired'));
    expect(failure).toBeInstanceOf(AssertionError);
    const { message } = failure as AssertionError; // as just seen
    expect(message).toContain('The request should be refused as expired; it was admitted.');
    for (const group of ['issuer', 'signature', 'aud', 'exp'])
      expect(message).toMatch(new RegExp(`^${group} +ok`, 'm'));
  });

  it('a defect → the same error is thrown', async () => {
    await expect(expectRefused(server, call(issuer.token()), 'expired', { policy: { scopes: [] } })).rejects.toThrow(
      TypeError,
    );
    // @ts-expect-error an option that does not exist
    await expect(expectRefused(server, call(''), 'expired', { polcy: policy })).rejects.toThrow(TypeError);
  });
});
