import { connect as connectHttp2 } from 'node:http2';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDpopClient } from '../support/dpop-client.ts';
import { type Answer, send } from '../support/http-client.ts';
import type { OpenedService } from '../support/open-service.ts';
import { passStart } from '../support/pass-start.ts';
import { needs } from '../support/programs.ts';
import { type ProxyServer, programOf, proxyNames, startProxy } from '../support/proxy-server.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { createTestCertificates } from '../support/tls.ts';
import { bearer, findVariant, openVariant } from '../support/variant-service.ts';
import { words } from '../support/words.ts';

const client = createDpopClient();
const provider = await useTestProvider();
const certificates = await createTestCertificates();
const free = await provider.sign();
const bound = await provider.sign({ cnf: { jkt: client.jkt } });
let first: OpenedService;
let second: OpenedService;

beforeAll(async () => {
  [first, second] = await Promise.all([startInstance(), startInstance()]);
});
afterAll(() => Promise.all([first, second].map((instance) => instance?.stop())));

async function startInstance(): Promise<OpenedService> {
  const service = await openVariant(findVariant('a'), provider, { TRUST_PROXY: '127.0.0.1' });
  await service.findLog(({ event }) => event === 'keys_fetched');
  await passStart();
  return service;
}

interface Call {
  readonly path: string;
  readonly headers?: readonly string[];
}

async function call(
  origin: string,
  { path, ...options }: Call,
): Promise<Pick<Answer, 'status' | 'body'> & { readonly challenge: string | undefined }> {
  const { status, headers, body } = await send(origin, path, { ca: certificates.ca, ...options });
  return { status, challenge: headers.get('www-authenticate'), body };
}

/** The headers of a call with the bound token and a fresh proof for a URL. */
const dpop = (url: string): readonly string[] => [
  'Authorization',
  `DPoP ${bound}`,
  'DPoP',
  client.prove(bound, { url }),
];

async function countRequests(instance: OpenedService): Promise<number> {
  const { body } = await call(instance.adminUrl ?? '', { path: '/metrics' });
  const counts = body.matchAll(/^portcullis_requests_total\{.*\} (\d+)$/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Headers with which a client may pass for another. `proxy-wire.test.ts` sends more, and shows that none arrives. */
const disguise = [
  ...['X-Forwarded-Proto', 'http', 'X-Forwarded-Host', 'evil.example', 'X-Forwarded-Prefix', '/evil'],
  ...['X-Forwarded-Port', '80', 'X-Forwarded-Server', 'evil.example', 'X-Forwarded-Scheme', 'http'],
  ...['Forwarded', 'for=192.0.2.1;host=evil.example;proto=http', 'X-Original-URL', '/api/public'],
  ...['Connection', 'close, X-Forwarded-Proto, X-Forwarded-Host, X-Forwarded-Prefix'],
];

/** Paths that leave the prefix or come to it by a detour; where a proxy straightens them, no proof can fit. */
const wanderings: readonly string[] = words(`
  //gate/api/private /gate/../api/private /gate/%2e%2e/api/private /gate/../gate/api/private
  /other/../gate/api/private
`);

for (const name of proxyNames) {
  describe(name, needs(programOf(name)), () => {
    let edge: ProxyServer;
    const at = (path: string): string => `${edge.origin}/gate${path}`;
    const start = (instances: readonly [string, string]): Promise<ProxyServer> =>
      startProxy(name, { upstreams: instances, prefix: '/gate', certificates });

    beforeAll(async () => {
      edge = await start([`127.0.0.1:${first.port}`, `127.0.0.1:${second.port}`]);
    });
    afterAll(() => edge?.stop());

    it.each([
      ['no token, open endpoint', '/gate/api/public', () => [], 200],
      ['no token', '/gate/api/private', () => [], 401],
      ['good token', '/gate/api/private', () => bearer(free), 200],
      ['altered token', '/gate/api/private', () => bearer(`${free.slice(0, -8)}AAAAAAAA`), 401],
      ['bound token as Bearer', '/gate/api/private', () => bearer(bound), 401],
      ['token with the scope', '/gate/api/private-scoped', () => bearer(free), 200],
      ['path without the prefix', '/api/private', () => bearer(free), 404],
    ])('%s → as without the proxy', async (_, path, headers, status) =>
      expect(await call(edge.origin, { path, headers: headers() })).toMatchObject({ status }),
    );

    it('token without the scope → 403', async () => {
      const headers = bearer(await provider.sign({ scope: 'read:other' }));
      expect(await call(edge.origin, { path: '/gate/api/private-scoped', headers })).toMatchObject({ status: 403 });
    });

    it('token of almost 16 KiB → 200', async () => {
      const size = Math.floor((16_384 - free.length) * 0.75) - 16;
      const token = await provider.sign({ padding: 'x'.repeat(size) });
      expect(token.length).toBeGreaterThan(16_200);
      expect(await call(edge.origin, { path: '/gate/api/private', headers: bearer(token) })).toMatchObject({
        status: 200,
      });
    });

    it.each([
      ['two Authorization headers', () => [...bearer(free), ...bearer(free)]],
      ['two proofs', () => [...dpop(at('/api/private')), ...dpop(at('/api/private')).slice(2)]],
    ])('%s → refused', async (_, headers) => {
      const { status } = await call(edge.origin, { path: '/gate/api/private', headers: headers() });
      expect([400, 401]).toContain(status);
    });

    it('resource_metadata → the URL under which clients find it', async () => {
      const { challenge } = await call(edge.origin, { path: '/gate/api/private' });
      const metadata = at('/.well-known/oauth-protected-resource');
      expect(challenge).toContain(`resource_metadata="${metadata}"`);
      const { status, body } = await call(edge.origin, { path: new URL(metadata).pathname });
      expect(status).toBe(200);
      expect(JSON.parse(body)).toMatchObject({ resource_documentation: at('/docs') });
    });

    it('proof for the external URL → 200, at every call', async () => {
      for (let i = 0; i < 4; i++) {
        const headers = dpop(at('/api/private'));
        expect(await call(edge.origin, { path: '/gate/api/private?q=%20a', headers })).toMatchObject({ status: 200 });
      }
    });

    it('proof for the external URL over HTTP/2 → 200', async () => {
      const [, authorization = '', , proof = ''] = dpop(at('/api/private'));
      const session = connectHttp2(edge.origin, { ca: certificates.ca });
      const stream = session.request({
        ':path': '/gate/api/private',
        authorization,
        dpop: proof,
        'x-forwarded-host': 'evil.example',
        x_forwarded_host: 'evil.example',
      });
      const status = await new Promise((resolve, reject) => {
        stream.once('response', (headers) => resolve(headers[':status']));
        stream.once('error', reject);
      });
      session.destroy();
      expect(status).toBe(200);
    });

    describe('client sends headers of a proxy', () => {
      it('no token → the same challenge', async () => {
        const plain = await call(edge.origin, { path: '/gate/api/private' });
        const disguised = await call(edge.origin, { path: '/gate/api/private', headers: disguise });
        expect(disguised).toEqual(plain);
      });

      it('valid Bearer token, valid proof → 200', async () => {
        const path = '/gate/api/private';
        expect(await call(edge.origin, { path, headers: [...disguise, ...bearer(free)] })).toMatchObject({
          status: 200,
        });
        const headers = dpop(at('/api/private'));
        expect(await call(edge.origin, { path, headers: [...disguise, ...headers] })).toMatchObject({ status: 200 });
      });
    });

    it('many calls → both instances serve them', async () => {
      const before = await Promise.all([first, second].map(countRequests));
      for (let i = 0; i < 8; i++) await call(edge.origin, { path: '/gate/api/public' });
      const after = await Promise.all([first, second].map(countRequests));
      const served = after.map((count, index) => count - (before[index] ?? 0));
      expect(Math.min(...served)).toBeGreaterThan(0);
      expect(Math.max(...served)).toBeLessThan(8);
    });

    it('proof sent again and again, memory store → 200 once at each instance', async () => {
      const headers = dpop(at('/api/private'));
      const answers: Awaited<ReturnType<typeof call>>[] = [];
      for (let i = 0; i < 6; i++) answers.push(await call(edge.origin, { path: '/gate/api/private', headers }));
      const refused = answers.filter(({ status }) => status !== 200);
      expect(refused.map(({ status }) => status)).toEqual([401, 401, 401, 401]);
      for (const { challenge } of refused) expect(challenge).toContain('The DPoP proof was used before.');
    });

    it.each(wanderings)('%s, no token → not open', async (path) => {
      const { status, body } = await call(edge.origin, { path });
      expect([400, 401, 404]).toContain(status);
      expect(body).not.toContain('user_id');
    });
  });
}
