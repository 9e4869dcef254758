import { describe, expect, it } from 'vitest';
import { createNonces } from '../../src/core/dpop/nonce.ts';
import { createMemoryReplayStore } from '../../src/core/dpop/replay.ts';
import { AccessError } from '../../src/core/failures.ts';
import type { DpopMode } from '../../src/core/http/credentials.ts';
import type { KeySet } from '../../src/core/keys/key-set.ts';
import type { Policy } from '../../src/core/policy/policy.ts';
import { createResourceServer, type ResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { bindingChecks, claimChecks } from '../../src/core/token/claims.ts';
import { explain } from '../../src/explain/explain.ts';
import type { Explanation } from '../../src/explain/explanation.ts';
import { formatExplanation } from '../../src/explain/terminal-text.ts';
import { createTestIssuer, proofFlaws, tokenFlaws } from '../../src/testing/index.ts';
import { findLeaks } from '../support/leaks.ts';

const url = 'https://api.test/orders';
const cookie = 'session=0123456789abcdef0123456789abcdef';
const secret = 'a secret of the nonces that nobody may see';
const policy: Policy = { scopes: ['read:messages'] };
const issuer = createTestIssuer();

type Headers = Readonly<Record<string, string>>;

function requestOf(headers: Headers, method = 'GET') {
  return new Request(url, { method, headers: { ...headers, host: 'api.test', cookie } });
}

/** Output in every format must not have 16 characters of these in a row. */
function secretsOf(headers: Headers): readonly string[] {
  const parts = Object.values(headers).flatMap((value) => value.split(/[\s.]/));
  return [...parts.filter((part, index) => part.length >= 16 && (index % 3 === 0 || parts.length < 4)), cookie, secret];
}

function leaks(explanation: Explanation, headers: Headers): readonly string[] {
  return findLeaks(secretsOf(headers), [JSON.stringify(explanation), formatExplanation(explanation)]);
}

/** Both say the same, and the first check that fails has that reason. */
async function expectSame(server: ResourceServer, request: Request, headers: Headers): Promise<string | undefined> {
  const explanation = await explain(server, request, policy);
  const judged = await server.judge(request, policy);
  const reason = judged instanceof AccessError ? judged.reason : undefined;
  expect(explanation.reason).toBe(reason);
  expect(explanation.checks.find(({ verdict }) => verdict === 'fail')?.reason).toBe(reason);
  if (reason !== undefined) expect(explanation.status).toBe(server.describeRefusal(judged, request).status);
  expect(leaks(explanation, headers)).toEqual([]);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are looked for
  expect(formatExplanation(explanation)).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/);
  return reason;
}

const modes: readonly DpopMode[] = ['off', 'allowed', 'required'];
const makeServer = (mode: DpopMode, more: object = {}): ResourceServer =>
  createResourceServer({ issuers: [issuer], audience: issuer.audience, dpop: { mode }, ...more });

describe('a dry run gives the reason of the refusal', () => {
  describe.each(modes)('DPoP %s', (mode) => {
    const servers = [
      makeServer(mode),
      makeServer(mode, { profile: 'rfc9068' }),
      makeServer(mode, { clientCertificate: 'tls' }),
    ];

    it('a valid request, no credentials, and credentials of every shape', async () => {
      const token = issuer.token({ scope: 'read:messages' });
      const values = [
        token,
        `Bearer ${token}`,
        `bearer  ${token}`,
        `DPoP ${token}`,
        'Bearer',
        'Bearer ',
        'Basic YTpi',
        `Bearer ${token}, Bearer ${token}`,
        `Bearer "${token}"`,
        'Bearer undefined',
        `Bearer ${'x'.repeat(9000)}`,
        '',
      ];
      for (const server of servers) {
        for (const authorization of values) await expectSame(server, requestOf({ authorization }), { authorization });
        await expectSame(server, requestOf({}), {});
        const both = { authorization: `Bearer ${token}`, dpop: 'x' };
        await expectSame(server, requestOf(both), both);
      }
    });

    it.each(tokenFlaws)('%s, by itself and with the claims of every other flaw of claims', async (flaw) => {
      const others = [
        {},
        { aud: 'https://other.test/' },
        { exp: 1 },
        { exp: 'x' },
        { nbf: 1e10 },
        { iat: undefined },
        { iat: 1e10 },
        { sub: 1 },
        { scope: ['x'] },
        { scope: undefined },
        { at_hash: 'x' },
        { cnf: 1 },
        { cnf: { jkt: 'x'.repeat(43) } },
        { cnf: { 'x5t#S256': 'x'.repeat(43) } },
        { iss: 'https://other.test/' },
      ];
      for (const claims of others) {
        const authorization = `Bearer ${issuer.flawed(flaw, { scope: 'read:messages', ...claims })}`;
        for (const server of servers) await expectSame(server, requestOf({ authorization }), { authorization });
      }
    });

    it.each(proofFlaws)('a proof with %s, with a valid token and an expired one', async (flaw) => {
      const client = issuer.dpopClient();
      for (const server of [...servers, makeServer(mode, { dpop: { mode, nonces: createNonces({ secret }) } })]) {
        for (const claims of [{ scope: 'read:messages' }, { scope: 'read:messages', exp: 1 }, {}]) {
          const headers = client.headers({ url, flaw, token: client.token(claims) });
          await expectSame(server, requestOf(headers), headers);
        }
      }
    });
  });

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

describe('no state of the server is changed', () => {
  it('a proof stays unused, nothing is cached, no key is fetched', async () => {
    let fetches = 0;
    const keys: KeySet = {
      ...issuer.keys,
      generation: 0,
      find: () => undefined,
      has: () => false,
      usable: () => true,
      refetch: () => {
        fetches++;
        return undefined;
      },
    };
    const replay = createMemoryReplayStore({});
    const server = createResourceServer({
      issuers: [{ issuer: issuer.issuer, keys: issuer.keys }],
      audience: issuer.audience,
      dpop: { replay },
    });
    const headers = issuer.dpopClient().headers({ url, scope: 'read:messages' });
    const before = [replay.size, JSON.stringify(server.tokenCacheStatus())];
    for (let i = 0; i < 3; i++) {
      const explanation = await explain(server, requestOf(headers), policy);
      expect(explanation.verdict).toBe('admitted');
      expect(explanation.checks.at(-1)).toMatchObject({ id: 'replay', verdict: 'unknown' });
    }
    expect([replay.size, JSON.stringify(server.tokenCacheStatus())]).toEqual(before);
    await explain(server, requestOf(issuer.headers()), policy, undefined, { keys });
    expect(fetches).toBe(0);
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
