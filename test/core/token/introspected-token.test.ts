import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/core/jose/json.ts';
import { Refused } from '../../../src/core/refused.ts';
import { type IntrospectionRules, verifyIntrospectedToken } from '../../../src/core/token/introspected-token.ts';

const now = 1_700_000_000;
const thumbprint = 'A'.repeat(43);
const rules: IntrospectionRules = {
  token: {
    audiences: new Set(['https://api.test/']),
    expTolerance: 5,
    nbfTolerance: 5,
    subject: 'required',
    permissionsClaim: 'permissions',
  },
  issuer: 'https://idp.test/',
  audience: 'required',
  certificates: 'on',
};
const good = { active: true, aud: 'https://api.test/', exp: now + 60, sub: 'alice', scope: 'a b' };

const judge = (change: JsonObject, others: Partial<IntrospectionRules> = {}) => {
  const answer = Object.fromEntries(Object.entries({ ...good, ...change }).filter(([, value]) => value !== undefined));
  const judged = verifyIntrospectedToken(Object.freeze(answer), { ...rules, ...others }, now);
  if (judged instanceof Refused) throw judged;
  return judged;
};

describe('a response about another token', () => {
  it.each<[JsonObject, string]>([
    [{ token_type: 'refresh_token' }, 'not_an_access_token'],
    [{ token_type: 'Refresh_Token' }, 'not_an_access_token'],
    [{ token_type: 'N_A' }, 'not_an_access_token'],
    [{ token_type: 'id_token' }, 'not_an_access_token'],
    [{ token_use: 'refresh' }, 'not_an_access_token'],
    [{ token_type: 'DPoP' }, 'malformed_cnf'],
    [{ token_type: 'dpop', cnf: { 'x5t#S256': thumbprint } }, 'malformed_cnf'],
  ])('%j → %s', (change, reason) => expect(() => judge(change)).toThrow(expect.objectContaining({ reason })));

  it.each<[JsonObject]>([
    [{ token_type: 'Bearer' }],
    [{ token_type: 'access_token', token_use: 'access' }],
    [{ token_type: 'DPoP', cnf: { jkt: thumbprint } }],
  ])('%j → good', (change) => expect(judge(change).claims.sub).toBe('alice'));
});

describe('a response about an active token', () => {
  it('valid → claims and scopes; the queried issuer becomes iss', () => {
    const token = judge({});
    expect(token.claims).toEqual({ ...good, iss: 'https://idp.test/' });
    expect([...token.scopes]).toEqual(['a', 'b']);
    expect(token).toMatchObject({
      jkt: undefined,
      certificate: undefined,
      verifiedBy: { issuer: rules.token, kid: undefined },
    });
    expect(Object.isFrozen(token.claims)).toBe(true);
  });

  it('with iss → the response itself', () =>
    expect(judge({ iss: 'https://idp.test/' }).claims).toEqual({ ...good, iss: 'https://idp.test/' }));

  it.each<[string, JsonObject]>([
    ['several audiences', { aud: ['https://other.test/', 'https://api.test/'] }],
    ['no scope', { scope: undefined }],
    ['no time of issue', { iat: undefined }],
    ['a time of issue', { iat: now }],
    ['a clock that is a little ahead', { nbf: now + 5, iat: now + 5 }],
    ['expired within the tolerance', { exp: now - 4 }],
  ])('%s → accepted', (_name, change) => expect(() => judge(change)).not.toThrow());

  it.each<[string, JsonObject]>([
    ['invalid_issuer', { iss: 'https://other.test/' }],
    ['invalid_issuer', { iss: 'https://idp.test' }],
    ['invalid_issuer', { iss: 1 }],
    ['invalid_audience', { aud: undefined }],
    ['invalid_audience', { aud: 'https://other.test/' }],
    ['invalid_audience', { aud: ['https://api.test/', 1] }],
    ['missing_exp', { exp: undefined }],
    ['malformed_exp', { exp: `${now + 60}` }],
    ['expired', { exp: now - 5 }],
    ['malformed_nbf', { nbf: 'now' }],
    ['not_yet_valid', { nbf: now + 6 }],
    ['malformed_iat', { iat: 'now' }],
    ['issued_in_future', { iat: now + 6 }],
    ['malformed_sub', { sub: undefined }],
    ['malformed_scope', { scope: ['a', 'b'] }],
    ['malformed_cnf', { cnf: 'bound' }],
  ])('%s: %j', (reason, change) => expect(() => judge(change)).toThrow(expect.objectContaining({ reason })));

  it('bound → the thumbprints', () => {
    expect(judge({ cnf: { jkt: thumbprint } }).jkt).toBe(thumbprint);
    expect(judge({ cnf: { 'x5t#S256': thumbprint } }).certificate).toBe(thumbprint);
    const off = () => judge({ cnf: { 'x5t#S256': thumbprint } }, { certificates: 'off' });
    expect(off).toThrow(expect.objectContaining({ reason: 'unsupported_cnf' }));
  });

  it('an audience that may be left out → left out, and not another', () => {
    const optional = { audience: 'optional' } as const;
    expect(() => judge({ aud: undefined }, optional)).not.toThrow();
    const other = () => judge({ aud: 'https://other.test/' }, optional);
    expect(other).toThrow(expect.objectContaining({ reason: 'invalid_audience' }));
    const late = () => judge({ aud: undefined, exp: now - 60 }, optional);
    expect(late).toThrow(expect.objectContaining({ reason: 'expired' }));
  });
});
