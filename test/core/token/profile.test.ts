import { describe, expect, it } from 'vitest';
import { refuseByFirst } from '../../../src/core/checks.ts';
import type { JsonObject } from '../../../src/core/jose/json.ts';
import { createResourceServer } from '../../../src/core/resource-server/resource-server.ts';
import { isProfileType, profileChecks } from '../../../src/core/token/claims.ts';
import { createTestIssuer } from '../../../src/testing/index.ts';
import { bearer, judge } from '../../testing/judge.ts';

const issuer = createTestIssuer();
const { audience } = issuer;

describe('the type of a token (RFC 9068 §2.1)', () => {
  it.each(['at+jwt', 'AT+JWT', 'application/at+jwt', 'Application/At+Jwt'])('%s → accepted', (typ) =>
    expect(isProfileType({ typ })).toBe(true),
  );

  it.each([[undefined], [null], ['JWT'], [''], ['at+jwt '], ['at-jwt'], [['at+jwt']]])('%j → unsupported_typ', (typ) =>
    expect(isProfileType({ typ })).toBe(false),
  );
});

describe('the claims of a token (RFC 9068 §2.2)', () => {
  const good = { sub: 'alice', client_id: 'editor', jti: '1' };
  const findDefect = (claims: JsonObject) => refuseByFirst(profileChecks, { claims })?.reason;

  it('all three → accepted', () => expect(findDefect(good)).toBeUndefined());

  it.each(['sub', 'client_id', 'jti'])('%s absent, or not a string → refused by its name', (claim) => {
    for (const value of [undefined, null, 1, ['a'], {}]) {
      expect(findDefect({ ...good, [claim]: value })).toBe(`malformed_${claim}`);
    }
  });
});

describe("a resource server with profile: 'rfc9068'", () => {
  const strict = createResourceServer({ issuers: [issuer], audience, profile: 'rfc9068' });
  const usual = createResourceServer({ issuers: [issuer], audience });

  it('a token of the profile → accepted, from the first time on', async () => {
    const token = issuer.token();
    expect(await judge(strict, bearer(token))).toBe('accepted');
    expect(await judge(strict, bearer(token))).toBe('accepted');
  });

  it.each([
    ['unsupported_typ', {}, { typ: 'JWT' }],
    ['unsupported_typ', {}, { typ: undefined }],
    ['malformed_client_id', { client_id: undefined }, {}],
    ['malformed_jti', { jti: undefined }, {}],
  ])('%s: accepted without the profile, refused with it', async (reason, claims, header) => {
    const token = issuer.token(claims, header);
    expect(await judge(usual, bearer(token))).toBe('accepted');
    expect(await judge(strict, bearer(token))).toBe(reason);
  });

  it('a token without sub → malformed_sub', async () =>
    expect(await judge(strict, bearer(issuer.token({ sub: undefined })))).toBe('malformed_sub'));

  it('one issuer with it, one without → each by its own rules', async () => {
    const other = createTestIssuer({ issuer: 'https://other.test/' });
    const mixed = { issuer: other.issuer, keys: other.keys, rules: { profile: 'rfc9068' } } as const;
    const server = createResourceServer({ issuers: [issuer, mixed], audience });
    expect(await judge(server, bearer(issuer.token({ jti: undefined })))).toBe('accepted');
    expect(await judge(server, bearer(other.token({ jti: undefined })))).toBe('malformed_jti');
  });

  it.each([
    [{ profile: 'rfc9068', subject: 'optional' }, /subject: the profile rfc9068 demands it/],
    [{ profile: 'rfc9069' }, /profile: write rfc9068/],
  ])('%j → TypeError at creation', (options, message) => {
    expect(() => createResourceServer({ issuers: [issuer], audience, ...(options as object) })).toThrow(TypeError);
    expect(() => createResourceServer({ issuers: [issuer], audience, ...(options as object) })).toThrow(message);
  });
});
