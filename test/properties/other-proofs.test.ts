import { createHash, X509Certificate } from 'node:crypto';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { AccessError, type Reason } from '../../src/core/failures.ts';
import { createIntrospection } from '../../src/core/introspection/introspection.ts';
import { parseJsonObject } from '../../src/core/jose/json.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { createTestIssuer } from '../../src/testing/index.ts';
import { anyText } from '../support/any-text.ts';
import { createTestCertificates } from '../support/tls.ts';
import { configureProperties } from './settings.ts';
import { apply, changes, changesOf } from './token-texts.ts';

configureProperties();

const now = 1_800_000_000;
const issuer = createTestIssuer({ now: () => now });
const { audience } = issuer;

/** Returns the result of a validation. Other errors are defects. */
async function verdictOf(judge: () => unknown): Promise<Reason | 'accepted'> {
  try {
    await judge();
    return 'accepted';
  } catch (error) {
    if (error instanceof AccessError) return error.reason;
    throw error;
  }
}

describe('the response of an introspection endpoint', () => {
  const good = { active: true, iss: issuer.issuer, aud: audience, sub: 'alice', exp: now + 60, iat: now, scope: 'a b' };
  const names = ['active', 'iss', 'aud', 'sub', 'exp', 'nbf', 'iat', 'scope', 'cnf', 'token_type'];

  let body = '';
  const introspection = createIntrospection({
    endpoint: 'https://idp.test/introspect',
    issuer: issuer.issuer,
    clientId: 'api',
    clientSecret: 'secret',
    maxSeconds: 0,
    inactiveSeconds: 0,
    fetch: async () => new Response(Buffer.from(body, 'latin1')),
  });
  const server = createResourceServer({ issuers: [issuer], audience, introspection, now: () => now });
  const request = new Request('https://api.test/', { headers: { authorization: 'Bearer opaque' } });
  const judge = (answer: string): Promise<Reason | 'accepted'> => {
    body = answer;
    return verdictOf(() => server.authorize(request));
  };

  it('good → accepted', async () => expect(await judge(JSON.stringify(good))).toBe('accepted'));

  it('any members → a verdict; accepted is what a reader of RFC 7662 would accept', async () => {
    await fc.assert(
      fc.asyncProperty(changesOf(names), async (change) => {
        const answer = JSON.stringify({ ...good, ...change });
        if ((await judge(answer)) !== 'accepted') return;
        const { active, iss, aud, sub, exp, cnf } = parseJsonObject(Buffer.from(answer)) ?? {};
        expect({ active, iss: iss ?? issuer.issuer, sub: typeof sub }).toEqual({
          active: true,
          iss: issuer.issuer,
          sub: 'string',
        });
        expect([aud].flat()).toContain(audience);
        expect(exp).toBeGreaterThan(now - 5);
        expect(cnf).toBeUndefined();
      }),
    );
  });

  it('any characters changed → a verdict', async () => {
    const text = JSON.stringify(good);
    await fc.assert(fc.asyncProperty(changes, async (all) => void (await judge(apply(text, all)))));
  });
});

describe('the header of a client certificate', () => {
  let header: string;
  let token: string;
  const server = createResourceServer({
    issuers: [issuer],
    audience,
    clientCertificate: 'header',
    trustProxy: ['127.0.0.1'],
    now: () => now,
  });
  const judge = (sent: string): Promise<Reason | 'accepted'> => {
    const lines: Readonly<Record<string, string>> = { authorization: `Bearer ${token}`, 'client-cert': sent };
    const headers = { get: (name: string) => lines[name] ?? null };
    return verdictOf(() =>
      server.authorize({ method: 'GET', url: 'https://api.test/', headers }, {}, { remoteAddress: '127.0.0.1' }),
    );
  };

  beforeAll(async () => {
    const { raw } = new X509Certificate((await createTestCertificates()).cert);
    header = `:${raw.toString('base64')}:`;
    token = issuer.token({ cnf: { 'x5t#S256': createHash('sha256').update(raw).digest('base64url') } });
  });

  it('good → accepted', async () => expect(await judge(header)).toBe('accepted'));

  it('any characters changed → refused, as a bad header or as another certificate', async () => {
    await fc.assert(
      fc.asyncProperty(changes, async (all) => {
        const changed = apply(header, all);
        fc.pre(changed !== header);
        expect(['bad_forwarded_header', 'client_certificate_mismatch']).toContain(await judge(changed));
      }),
    );
  });

  it('any string → refused', async () => {
    const text = fc.oneof(
      anyText(),
      fc.uint8Array().map((bytes) => `:${Buffer.from(bytes).toString('base64')}:`),
    );
    await fc.assert(
      fc.asyncProperty(text, async (sent) => void expect(await judge(sent)).toBe('bad_forwarded_header')),
    );
  });
});
