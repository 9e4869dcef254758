import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import type { DpopMode } from '../../src/core/http/credentials.ts';
import type { Policy } from '../../src/core/policy/policy.ts';
import { createResourceServer, type ResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { bindingChecks, claimChecks } from '../../src/core/token/claims.ts';
import { explain } from '../../src/explain/explain.ts';
import { formatExplanation } from '../../src/explain/terminal-text.ts';
import { createTestIssuer, tokenFlaws } from '../../src/testing/index.ts';

const url = 'https://api.test/orders';
const policy: Policy = { scopes: ['read:messages'] };
const issuer = createTestIssuer();

function requestOf(headers: Readonly<Record<string, string>>) {
  return new Request(url, { headers: { ...headers, host: 'api.test' } });
}

const makeServer = (mode: DpopMode, more: object = {}): ResourceServer =>
  createResourceServer({ issuers: [issuer], audience: issuer.audience, dpop: { mode }, ...more });

describe('a dry run gives the reason of the refusal', () => {
  it('two flaws → the reason is the first of the refusal, and the second is reported too', async () => {
    const authorization = `Bearer ${issuer.token({ aud: 'https://api.test', exp: 1, scp: ['read:messages'] })}`;
    const { checks, reason } = await explain(makeServer('allowed'), requestOf({ authorization }), policy);
    expect(reason).toBe('invalid_audience');
    expect(checks.filter(({ verdict }) => verdict === 'fail').map((check) => check.reason)).toEqual([
      'invalid_audience',
      'expired',
      'insufficient_scope',
    ]);
  });
});

describe('report', () => {
  const explainToken = (claims: object, more: object = {}) =>
    explain(
      makeServer('allowed', more),
      requestOf({ authorization: `Bearer ${issuer.token({ scope: 'read:messages', ...claims })}` }),
      policy,
    );

  it('no subject, no e-mail and no other claim', async () => {
    const explanation = await explainToken({
      sub: 'auth0|alice',
      email: 'alice@example.com',
      note: 'private',
      aud: 'x',
    });
    expect(JSON.stringify(explanation) + formatExplanation(explanation)).not.toMatch(/alice|private/);
  });

  it('a claim that repeats a part of the signature is withheld', async () => {
    const token = issuer.token();
    const explanation = await explain(
      makeServer('allowed'),
      requestOf({ authorization: `Bearer ${issuer.token({ aud: token.slice(-40) })}`, dpop: token.slice(-40) }),
    );
    expect(JSON.stringify(explanation)).not.toContain(token.slice(-20));
  });

  it('controls in claims are escaped', async () => {
    const explanation = await explainToken({ aud: '\x1b[2J\u202eevil\u2066' });
    expect(explanation.checks.find(({ id }) => id === 'aud')?.seen).toBe('\\u{1b}[2J\\u{202e}evil\\u{2066}');
  });

  it.each([
    [{ jkt: 'x'.repeat(43), kid: 'of-the-issuer' }, 'kid'],
    [{ 'of-the-issuer': 1 }, 'no supported member'],
  ])('cnf %j → unsupported_cnf with the member, without its value', async (cnf, seen) => {
    const explanation = await explainToken({ cnf });
    expect(explanation.checks.find(({ id }) => id === 'confirmation')).toMatchObject({
      reason: 'unsupported_cnf',
      verdict: 'fail',
      expected: 'jkt',
      seen,
    });
    expect(JSON.stringify(explanation)).not.toContain('of-the-issuer');
  });

  it('no keys → undecided, and the claims are still compared', async () => {
    const server = createResourceServer({ issuer: issuer.issuer, audience: issuer.audience });
    const authorization = `Bearer ${issuer.token({ aud: 'https://api.test' })}`;
    const explanation = await explain(server, requestOf({ authorization }), policy);
    server.close();
    expect(explanation).toMatchObject({ verdict: 'undecided', against: { keys: 'none' } });
    expect(explanation).not.toHaveProperty('reason');
    expect(explanation.checks.find(({ id }) => id === 'aud')).toMatchObject({
      verdict: 'fail',
      verified: false,
      seen: 'https://api.test',
      expected: ['https://api.test/'],
      causes: [{ id: 'audience_slash', certainty: 'certain', fix: "audience: 'https://api.test'" }],
    });
  });

  it('at another time, with other keys', async () => {
    const other = createTestIssuer();
    const server = makeServer('allowed');
    const authorization = `Bearer ${issuer.token({ scope: 'read:messages' })}`;
    const at = Math.floor(Date.now() / 1000) + 7200;
    expect((await explain(server, requestOf({ authorization }), policy, undefined, { at })).reason).toBe('expired');
    expect((await explain(server, requestOf({ authorization }), policy, undefined, { keys: other.keys })).reason).toBe(
      'unknown_kid',
    );
  });

  it('every record of the core is read', async () => {
    const explanation = await explainToken({});
    const ids = new Set(explanation.checks.map(({ id }) => id));
    expect([...claimChecks, ...bindingChecks].map(({ id }) => id).filter((id) => !ids.has(id))).toEqual([]);
    expect(ids.size).toBe(explanation.checks.length);
  });

  it('a server of another making → TypeError', async () => {
    const { describeRefusal, ...rest } = makeServer('allowed');
    await expect(explain({ ...rest, describeRefusal }, requestOf({}))).rejects.toThrow(TypeError);
  });
});

describe('schema of an explanation', () => {
  const schema = JSON.parse(readFileSync('schema/explain.schema.json', 'utf8')) as object; // ours
  const fits = new Ajv2020({ strict: false, validateFormats: false }).compile(schema);

  it('matches explanations of granted and refused requests, and not another shape', async () => {
    const issuer = createTestIssuer();
    const server = createResourceServer({ issuers: [issuer], audience: issuer.audience });
    const tokens = [issuer.token(), ...tokenFlaws.map((flaw) => issuer.flawed(flaw))];
    for (const token of tokens) {
      const request = new Request('https://api.test/', { headers: { authorization: `Bearer ${token}` } });
      const explanation = JSON.parse(JSON.stringify(await explain(server, request, { scopes: ['a'] })));
      expect([fits(explanation), fits.errors]).toEqual([true, null]);
      expect(fits({ ...explanation, more: 1 })).toBe(false);
      expect(fits({ ...explanation, verdict: 'maybe' })).toBe(false);
    }
  });
});
