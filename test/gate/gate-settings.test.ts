import { hash, X509Certificate } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import { request as requestHttps } from 'node:https';
import { join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { createNonces } from '../../src/core/dpop/nonce.ts';
import { listen, stop } from '../../tools/shared/network.js';
import { createDpopClient } from '../support/dpop-client.ts';
import { useFolder } from '../support/folder.ts';
import { useUpstream } from '../support/gate-edge.ts';
import { type OpenedGate, openGate } from '../support/gate-process.ts';
import { type Answer, send } from '../support/http-client.ts';
import { awaitReady } from '../support/service-process.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { createClientCertificate, createTestCertificates } from '../support/tls.ts';

const client = createDpopClient();
const folder = useFolder();
afterAll(() => client.close());
const provider = await useTestProvider();
const upstream = await useUpstream();
upstream.answer = (incoming, outgoing) => void outgoing.end(`host ${incoming.headers.host}`);
const upstreamUrl = `http://${upstream.address}`;
const token = await provider.sign({ cnf: { jkt: client.jkt } });

/** Opens a gate for the test; it must end with 0. */
async function start(environment: Readonly<Record<string, string>>, hosts: object = {}): Promise<OpenedGate> {
  const rules = [
    { id: 'all', path: '/**' },
    { id: 'closed', ...hosts, path: '/closed', access: 'deny' },
  ];
  const issuers = { staff: { issuer: provider.issuer, audience: provider.audience } };
  const gate = await openGate(provider, { issuers, rules }, environment);
  onTestFinished(async () => expect(await gate.stop()).toBe(0));
  return gate;
}

interface Proven {
  readonly htu: string;
  readonly path: string;
  readonly host?: string;
  readonly nonce?: string | undefined;
  readonly iat?: number;
}

/** Sends a proof to a gate that is the proxy. */
function call(gate: OpenedGate, { htu, path, host = 'api.example', nonce, ...rest }: Proven): Promise<Answer> {
  const proof = client.prove(token, { url: htu, ...rest, ...(nonce !== undefined && { nonce }) });
  return send(gate.url, path, { headers: ['Host', host, 'Authorization', `DPoP ${token}`, 'DPoP', proof] });
}

describe('settings of the gate', () => {
  it('EXTERNAL_URL, as the proxy → proofs are compared with it; rules are found by Host, which is forwarded', async () => {
    const EXTERNAL_URL = 'https://shop.example/v1';
    const gate = await start({ UPSTREAM: upstreamUrl, EXTERNAL_URL }, { hosts: ['inner.example'] });
    const asked = await call(gate, { htu: `${EXTERNAL_URL}/orders`, path: '/orders' });
    const nonce = asked.headers.get('dpop-nonce');
    const passed = await call(gate, { htu: `${EXTERNAL_URL}/orders`, path: '/orders', nonce });
    expect([passed.status, passed.body]).toEqual([200, 'host api.example']);
    const refused = await call(gate, { htu: 'http://api.example/orders', path: '/orders', nonce });
    expect([refused.status, refused.body]).toEqual([401, expect.stringContaining('invalid_dpop_proof')]);
    const closed = await call(gate, { htu: `${EXTERNAL_URL}/closed`, path: '/closed', host: 'inner.example', nonce });
    expect(closed.status).toBe(403);
  });

  it('EXTERNAL_URL, beside a proxy → the URL that the proxy tells decides', async () => {
    const gate = await start({ EXTERNAL_URL: 'https://shop.example/v1' });
    const prove = (nonce?: string): readonly string[] => [
      ...['Authorization', `DPoP ${token}`],
      ...['DPoP', client.prove(token, { url: 'https://api.example/orders', ...(nonce !== undefined && { nonce }) })],
    ];
    const asked = await gate.ask({ path: '/orders', headers: prove() });
    const { status } = await gate.ask({ path: '/orders', headers: prove(asked.headers.get('dpop-nonce')) });
    expect(status).toBe(200);
  });

  it('a proof from before the start → a nonce is required, and is accepted', async () => {
    const proven = { htu: 'http://api.example/orders', path: '/orders', iat: Math.floor(Date.now() / 1000) - 1 };
    const gate = await start({ UPSTREAM: upstreamUrl });
    await gate.findLog(({ event }) => event === 'keys_fetched');
    const asked = await call(gate, proven);
    expect([asked.status, asked.body]).toEqual([401, expect.stringContaining('use_dpop_nonce')]);
    const nonce = asked.headers.get('dpop-nonce');
    expect((await call(gate, { ...proven, nonce })).status).toBe(200);
  });

  it('DPOP_NONCE_SECRET_FILE changes, SIGHUP → nonces of both secrets are taken; a bad file changes nothing', async () => {
    const [first, second] = ['first-secret-of-at-least-32-bytes!', 'second-secret-of-at-least-32-bytes'] as const;
    const file = join(folder, 'nonce');
    await writeFile(file, first);
    const environment = { DPOP_NONCE: 'required', DPOP_NONCE_SECRET_FILE: file, UPSTREAM: upstreamUrl };
    const gate = await start(environment);
    const take = async (secret: string): Promise<number> => {
      const nonce = createNonces({ secret }).issue(Date.now() / 1000);
      return (await call(gate, { htu: 'http://api.example/orders', path: '/orders', nonce })).status;
    };
    await expect.poll(() => take(first), { timeout: 10_000, interval: 10 }).toBe(200);
    await awaitReady(gate);
    await writeFile(file, 'short');
    gate.signal('SIGHUP');
    expect(JSON.stringify(await gate.findLog(({ event }) => event === 'reload_failed'))).toContain('DPOP_NONCE_SECRET');
    expect(await take(first)).toBe(200);
    await writeFile(file, second);
    gate.signal('SIGHUP');
    const countReloads = (): number => gate.logs.filter(({ event }) => event === 'secrets_reloaded').length;
    await expect.poll(countReloads, { timeout: 10_000, interval: 10 }).toBe(1);
    expect([await take(second), await take(first)]).toEqual([200, 200]);
  });

  it('PEER_SHARE behind a proxy → by client address, with or without a port, or by the proxy if it names none', async () => {
    const held: ServerResponse[] = [];
    const slow = createServer((_, outgoing) => held.push(outgoing));
    onTestFinished(() => stop(slow));
    const UPSTREAM = `http://127.0.0.1:${await listen(slow)}`;
    // Four of 4096 requests.
    const gate = await start({ UPSTREAM, TRUST_PROXY: '127.0.0.1', PEER_SHARE: '0.001' });
    const bearer = ['Authorization', `Bearer ${await provider.sign()}`];
    await gate.findLog(({ event }) => event === 'keys_fetched');
    const countRefused = async (name: (n: number) => string): Promise<number> => {
      const calls = Array.from({ length: 6 }, (_, n) =>
        send(gate.url, '/', { headers: [...bearer, 'X-Forwarded-For', name(n)] }),
      );
      const refused: Answer[] = [];
      for (const each of calls) void each.then((answer) => answer.status === 503 && refused.push(answer));
      await expect.poll(() => held.length + refused.length, { timeout: 10_000, interval: 10 }).toBe(6);
      for (const each of held.splice(0)) each.end();
      await Promise.all(calls);
      return refused.length;
    };
    expect(await countRefused((n) => `203.0.113.9:${50_000 + n}`)).toBe(2);
    expect(await countRefused((n) => `203.0.113.${n}:51234`)).toBe(0);
    expect(await countRefused((n) => `198.51.100.7, [2001:db8:0:${n}::1]:443, 127.0.0.1:80`)).toBe(0);
    expect(await countRefused((n) => `[2001:db8::${n}]:${n}`)).toBe(2);
    expect(await countRefused(() => 'unknown')).toBe(2);
    const limits = () => gate.logs.flatMap((line) => (line['limit'] === undefined ? [] : [line['client_ip']]));
    await expect
      .poll(limits)
      .toEqual([
        ...Array(2).fill('203.0.113.9'),
        ...Array(2).fill(expect.stringMatching(/^2001:/)),
        ...Array(2).fill('127.0.0.1'),
      ]);
  });

  it('DOCS → one warning that names the command that reads it', async () => {
    const gate = await start({ DOCS: 'false', CORS_ORIGINS: 'https://app.example' });
    await gate.findLog(({ event }) => event === 'listening');
    expect(gate.logs.filter(({ event }) => event === 'setting_unread')).toEqual([
      expect.objectContaining({ level: 'warn', setting: 'DOCS', fix: expect.stringMatching(/portcullis serve/) }),
    ]);
  });

  it('TLS_CLIENT_CA, as the proxy → only clients with a certificate of it, and a token that is bound to theirs passes', async () => {
    const [certificates, own, foreign] = await Promise.all([
      createTestCertificates(),
      createClientCertificate(),
      createClientCertificate(),
    ]);
    const write = async (name: string, content: string): Promise<string> => {
      await writeFile(join(folder, name), content);
      return join(folder, name);
    };
    const gate = await start({
      ...{ UPSTREAM: upstreamUrl, TLS_CERT: await write('cert', certificates.cert) },
      ...{ TLS_KEY: await write('key', certificates.key), TLS_CLIENT_CA: await write('ca', own.cert) },
    });
    const get = (bearer: string, pair: object): Promise<number> =>
      new Promise((resolve, reject) => {
        const headers = { authorization: `Bearer ${bearer}` };
        const options = { port: gate.port, host: '127.0.0.1', path: '/', headers, agent: false, ca: certificates.ca };
        requestHttps({ ...options, ...pair }, (response) => {
          response.resume().once('end', () => resolve(response.statusCode ?? 0));
        })
          .once('error', reject)
          .end();
      });
    const bind = (cert: string): Promise<string> =>
      provider.sign({ cnf: { 'x5t#S256': hash('sha256', new X509Certificate(cert).raw, 'base64url') } });
    expect(await get(await bind(own.cert), own)).toBe(200);
    expect(await get(await bind(foreign.cert), own)).toBe(401);
    await expect(get(await provider.sign(), {})).rejects.toThrow();
    await expect(get(await provider.sign(), foreign)).rejects.toThrow();
  });
});
