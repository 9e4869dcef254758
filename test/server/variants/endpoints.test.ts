import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { docsPolicy } from '../../../src/serve/docs/docs-page.ts';
import { type Answer, type RequestOptions, send } from '../../support/http-client.ts';
import type { OpenedService } from '../../support/open-service.ts';
import { useTestProvider } from '../../support/test-provider.ts';
import { bearer, findVariant, openVariant, variants } from '../../support/variant-service.ts';
import { words } from '../../support/words.ts';

const provider = await useTestProvider();

const metadataPath = '/.well-known/oauth-protected-resource';
const openPaths = ['/api/public', metadataPath, '/openapi.json', '/docs'];
const otherMethods = ['POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND', 'QUERY'];
const ownOrigin = 'https://app.example.test';

/** The headers of an answer, without those that differ from one to the next and those that a body brings. */
function lastingHeaders({ headers }: Answer): Readonly<Record<string, string>> {
  const passing = ['date', 'x-request-id', 'content-length'];
  return Object.fromEntries([...headers].filter(([name]) => !passing.includes(name)));
}

describe.each(variants)('variant $name', (variant) => {
  const { protectedPaths, plain } = variant;
  const foreignPaths = variants.flatMap((each) => each.protectedPaths).filter((path) => !protectedPaths.includes(path));
  let service: OpenedService;
  const call = (path: string, options?: RequestOptions) => send(service.url, path, options);
  const callWith = async (path: string, claims?: Readonly<Record<string, unknown>>, method = 'GET') =>
    call(path, { method, headers: bearer(await provider.sign(claims)) });

  beforeAll(async () => {
    service = await openVariant(variant, provider, { CORS_ORIGINS: ownOrigin });
  });
  afterAll(() => service.stop());

  describe('bodies', () => {
    it.each(openPaths)('%s → 200 with its length, without a token', async (path) => {
      const { status, headers, body } = await call(path);
      expect(status).toBe(200);
      expect(headers.get('content-length')).toBe(String(Buffer.byteLength(body)));
    });

    it('text outside ASCII → arrives in UTF-8', async () => {
      const { body, headers } = await callWith('/api/private', { sub: 'Zoë 🔑' });
      expect(headers.get('content-length')).toBe(String(Buffer.byteLength(body)));
      if (variant.name === 'a') expect(body).toContain('Zoë 🔑');
    });
  });

  describe('HEAD', () => {
    it.each([...openPaths, ...protectedPaths, '/nowhere'])('%s without a token → as GET, no body', async (path) => {
      const [get, head] = await Promise.all([call(path), call(path, { method: 'HEAD' })]);
      expect(head.status).toBe(get.status);
      expect(lastingHeaders(head)).toEqual(lastingHeaders(get));
      expect(head.body).toBe('');
    });

    it.each(protectedPaths)('%s with a valid token → 200 as GET, no body', async (path) => {
      const [get, head] = await Promise.all([callWith(path), callWith(path, {}, 'HEAD')]);
      expect(head.status).toBe(200);
      expect(lastingHeaders(head)).toEqual(lastingHeaders(get));
      expect(head.body).toBe('');
    });

    it('scoped, token without the scope → refused as GET is', async () => {
      expect((await callWith('/api/private-scoped', { scope: 'openid' }, 'HEAD')).status).toBe(
        variant.insufficientScopeStatus,
      );
    });
  });

  describe('unknown endpoints', () => {
    it.each(['/', '/api', '/nowhere', '/api/private/x', '/favicon.ico', '/metrics', '/healthz', '/readyz'])(
      '%s → 404 without authentication',
      async (path) => {
        const { status, headers, json } = await call(path);
        expect(status).toBe(404);
        expect(json).toEqual(plain('Not Found'));
        expect(headers.has('www-authenticate')).toBe(false);
      },
    );

    it.each(otherMethods)('%s on every path → 405 with Allow, without authentication', async (method) => {
      const paths = [...openPaths, ...protectedPaths];
      const answers = await Promise.all(paths.map((path) => call(path, { method })));
      for (const { status, headers, json } of answers) {
        expect(status).toBe(405);
        expect(headers.get('allow')).toBe('GET, HEAD, OPTIONS');
        expect(headers.has('www-authenticate')).toBe(false);
        expect(json).toEqual(plain('Method Not Allowed'));
      }
    });

    it.each([...foreignPaths, '/api/elsewhere'])(
      '%s of another variant, or unknown → 404 for a valid token',
      async (path) => expect((await callWith(path)).status).toBe(404),
    );
  });

  describe('caches', () => {
    it.each(protectedPaths)('%s, granted or refused → no-store', async (path) => {
      const answers = await Promise.all([
        call(path),
        call(path, { headers: bearer('x.y.z') }),
        call(path, { headers: [...bearer('a'), ...bearer('b')] }),
        callWith(path),
        callWith(path, { scope: '' }),
        callWith(path, {}, 'HEAD'),
      ]);
      for (const { headers } of answers) expect(headers.get('cache-control')).toBe('no-store');
    });
  });

  describe('CORS', () => {
    const preflight = (path: string, origin: string) =>
      call(path, {
        method: 'OPTIONS',
        headers: [
          ...['Origin', origin, 'Access-Control-Request-Method', 'GET'],
          ...['Access-Control-Request-Headers', 'authorization, dpop, traceparent'],
        ],
      });

    it('preflight from an origin that is allowed → may send a token and a proof', async () => {
      const { status, headers } = await preflight('/api/private', ownOrigin);
      expect(status).toBe(204);
      expect(headers.get('access-control-allow-origin')).toBe(ownOrigin);
      expect(headers.get('access-control-allow-headers')).toBe('authorization, dpop, traceparent');
      expect(headers.get('access-control-allow-methods')).toMatch(/^GET, ?HEAD$/);
      expect(headers.get('vary')).toMatch(/\borigin\b/i);
      expect(headers.has('access-control-allow-credentials')).toBe(false);
    });

    it.each(
      words(`
      https://evil.example.test https://app.example.test.evil.example http://app.example.test
      https://app.example.test:8443 HTTPS://APP.EXAMPLE.TEST null
    `),
    )('preflight and call from %s → no Access-Control-Allow-Origin', async (origin) => {
      const answers = [
        await preflight('/api/private', origin),
        await call('/api/public', { headers: ['Origin', origin] }),
      ];
      for (const { headers } of answers) expect(headers.has('access-control-allow-origin')).toBe(false);
    });

    it.each([
      ['200', '/api/public', [], 200],
      ['401', '/api/private', [], 401],
      ['401 for a bad token', '/api/private', bearer('x.y.z'), 401],
      ['400', '/api/private', [...bearer('a'), ...bearer('b')], 400],
      ['404', '/nowhere', [], 404],
    ])('call from an allowed origin, %s → the script may read it, and the challenge', async (_, path, more, status) => {
      const { headers, ...answer } = await call(path, { headers: ['Origin', ownOrigin, ...more] });
      expect(answer.status).toBe(status);
      expect(headers.get('access-control-allow-origin')).toBe(ownOrigin);
      const exposed = headers.get('access-control-expose-headers')?.split(',');
      expect(exposed).toEqual(
        expect.arrayContaining(['WWW-Authenticate', 'DPoP-Nonce', 'Retry-After', 'X-Request-Id']),
      );
      expect(headers.get('vary')).toMatch(/\borigin\b/i);
    });
  });

  it('metadata → every origin may read it', async () => {
    const origin = ['Origin', 'https://inspector.example.test'];
    for (const target of [metadataPath, `${metadataPath}?x`]) {
      const { status, headers } = await call(target, { headers: origin });
      expect([status, headers.get('access-control-allow-origin')]).toEqual([200, '*']);
    }
    const asked = ['Access-Control-Request-Method', 'GET', 'Access-Control-Request-Headers', 'mcp-protocol-version'];
    const preflight = await call(metadataPath, { method: 'OPTIONS', headers: [...origin, ...asked] });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*');
    expect(preflight.headers.get('access-control-allow-headers')).toBe('*');
    const posted = await call(metadataPath, { method: 'POST', headers: origin });
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS']);
    expect((await call(`${metadataPath}x`, { headers: origin })).headers.has('access-control-allow-origin')).toBe(
      false,
    );
  });

  it('/openapi.json and /docs → their types and the policy of the page', async () => {
    const [document, page] = [await call('/openapi.json'), await call('/docs')];
    expect(document.headers.get('content-type')).toBe('application/json');
    expect(Object.fromEntries(page.headers)).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': docsPolicy,
      'x-content-type-options': 'nosniff',
    });
    for (const path of protectedPaths) for (const { body } of [document, page]) expect(body).toContain(path);
  });
});

describe('variant A', () => {
  let service: OpenedService;
  beforeAll(async () => {
    service = await openVariant(findVariant('a'), provider, { CUSTOM_CLAIM: 'https://my.example.test/plan' });
  });
  afterAll(() => service.stop());

  it('profile of a token with inexact numbers → their digits', async () => {
    const edit = (json: string) => json.replaceAll('"#"', '9007199254740993');
    const token = await provider.sign({ permissions: ['#'], 'https://my.example.test/plan': { id: '#' } }, { edit });
    const { json } = await send(service.url, '/api/profile', { headers: bearer(token) });
    const digits = '9007199254740993';
    expect(json).toMatchObject({ permissions: [digits], custom_claim: { id: digits } });
  });

  it('without CORS_ORIGINS → OPTIONS is 405, and no response mentions origins', async () => {
    const headers = ['Origin', ownOrigin, 'Access-Control-Request-Method', 'GET'];
    const options = await send(service.url, '/api/private', { method: 'OPTIONS', headers });
    expect(options.status).toBe(405);
    expect(options.headers.get('allow')).toBe('GET, HEAD');
    for (const { text } of [options, await send(service.url, '/api/public', { headers })]) {
      expect(text).not.toMatch(/access-control/i);
    }
    for (const [method, status] of [
      ['GET', 200],
      ['HEAD', 200],
      ['OPTIONS', 204],
    ] as const) {
      const metadata = await send(service.url, metadataPath, { method, headers });
      expect([metadata.status, metadata.headers.get('access-control-allow-origin')]).toEqual([status, '*']);
    }
  });
});

describe('protected resource metadata', () => {
  const [a, b] = [findVariant('a'), findVariant('b')];
  const dpopOff = { dpop_bound_access_tokens_required: false };
  const dpopOn = { dpop_signing_alg_values_supported: ['ES256'], dpop_bound_access_tokens_required: false };

  it.each([
    ['A, DPoP allowed', a, {}, dpopOn],
    [
      'A, DPoP required, other proof algorithms',
      a,
      { DPOP_REQUIRED: 'true', DPOP_ALGORITHMS: 'ES256,EdDSA' },
      { dpop_signing_alg_values_supported: ['ES256', 'EdDSA'], dpop_bound_access_tokens_required: true },
    ],
    ['B', b, {}, dpopOff],
    ['B, DPoP allowed', b, { DPOP_ENABLED: 'true' }, dpopOn],
  ] as const)('variant %s → members of RFC 9728 §2', async (_, variant, environment, dpop) => {
    const service = await openVariant(variant, provider, { ...environment, ADMIN_PORT: 'off' });
    const { status, headers, json } = await send(service.url, metadataPath);
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('application/json');
    expect(json).toEqual({
      resource: provider.audience,
      authorization_servers: [provider.issuer],
      scopes_supported: ['read:messages'],
      bearer_methods_supported: ['header'],
      resource_documentation: `${service.url}/docs`,
      ...dpop,
    });
    await service.stop();
  });

  it.each(variants)('variant $name, DOCS=false → 404 for the documents, no word of them', async (variant) => {
    const service = await openVariant(variant, provider, { DOCS: 'false' });
    for (const path of ['/openapi.json', '/docs']) {
      const { status, json } = await send(service.url, path);
      expect(status).toBe(404);
      expect(json).toEqual(variant.plain('Not Found'));
    }
    expect((await send(service.url, metadataPath)).json).not.toHaveProperty('resource_documentation');
    await service.stop();
  });
});

it.each([{}, { sub: null }])('SUBJECT=optional, a token with sub %j → variant A has no user_id', async (claims) => {
  const service = await openVariant(findVariant('a'), provider, { SUBJECT: 'optional' });
  const headers = bearer(await provider.sign({ sub: undefined, ...claims }));
  const { status, json } = await send(service.url, '/api/private', { headers });
  await service.stop();
  expect([status, json]).toEqual([200, expect.objectContaining({ user_id: null })]);
});
