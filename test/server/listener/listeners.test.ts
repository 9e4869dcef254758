import { spawn } from 'node:child_process';
import { hash, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { send } from '../../support/http-client.ts';
import { findChildren } from '../../support/processes.ts';
import { awaitReady, superviseChild } from '../../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../../support/test-provider.ts';
import { createClientCertificate, createTestCertificates, type TestCertificates } from '../../support/tls.ts';
import {
  bearer,
  findVariant,
  openVariant,
  readEnvironment,
  startInVain,
  startVariant,
} from '../../support/variant-service.ts';
import { words } from '../../support/words.ts';

let provider: TestProvider;
let folder: string;
let certificates: TestCertificates;

beforeAll(async () => {
  [provider, folder, certificates] = await Promise.all([
    startTestProvider(),
    mkdtemp(join(tmpdir(), 'portcullis-listeners-')),
    createTestCertificates(),
  ]);
});
afterAll(async () => {
  await provider.close();
  await rm(folder, { recursive: true });
});

/** The status of an answer over a unix socket. */
function getOverSocket(socketPath: string, headers: readonly string[] = []): Promise<number> {
  return new Promise((resolve, reject) => {
    const all = ['Host', 'localhost', ...headers];
    requestHttp({ socketPath, path: '/api/private', headers: all, agent: false }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0));
    })
      .once('error', reject)
      .end();
  });
}

interface TlsClient {
  readonly ca: string;
  readonly cert?: string;
  readonly key?: string;
}

/** The status of an answer over TLS, and the serial number of the certificate that was shown. */
function getOverTls(port: number, client: TlsClient, token: string): Promise<{ status: number; certificate: string }> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    requestHttps({ port, host: '127.0.0.1', path: '/api/private', headers, agent: false, ...client }, (response) => {
      const { socket } = response as {
        readonly socket: Socket & { getPeerX509Certificate?: () => { fingerprint256: string } };
      };
      const certificate = socket.getPeerX509Certificate?.().fingerprint256 ?? '';
      response.resume().once('end', () => resolve({ status: response.statusCode ?? 0, certificate }));
    })
      .once('error', reject)
      .end();
  });
}

/** The first lines of the answers to a client that sends three requests in one go, and then closes its half. */
async function pipelineOverTls(port: number, ca: string, token: string): Promise<readonly string[]> {
  const halfOpen = { allowHalfOpen: true }; // not in the types
  const socket = connectTls({ port, host: '127.0.0.1', ca, ...halfOpen });
  await once(socket, 'secureConnect');
  socket.end(`GET /api/private HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`.repeat(3));
  return (await text(socket)).match(/HTTP\/1\.1 \d+/g) ?? [];
}

async function writeFiles(name: string, { cert, key, ca }: TestCertificates) {
  const paths = { cert: join(folder, `${name}.crt`), key: join(folder, `${name}.key`), ca: join(folder, `${name}.ca`) };
  await Promise.all([writeFile(paths.cert, cert), writeFile(paths.key, key), writeFile(paths.ca, ca)]);
  return paths;
}

describe('addresses', () => {
  it('HOST=unix:/path → serves there, also where a killed process has left its socket; gone after the end', async () => {
    const path = join(folder, `api.sock`);
    const start = () => startVariant(findVariant('a'), provider, { HOST: `unix:${path}` });
    const killed = await start();
    expect(killed.url).toBe(`unix:${path}`);
    await killed.kill();
    expect((await stat(path)).isSocket()).toBe(true);
    const service = await start();
    const headers = bearer(await provider.sign());
    const statuses = await Promise.all(Array.from({ length: 10 }, () => getOverSocket(path, headers)));
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect((await startInVain(start())).end.code).toBe(69);
    expect(await service.stop()).toBe(0);
    await expect(stat(path)).rejects.toThrow('ENOENT');
  });

  it('TLS_CERT, TLS_KEY → TLS; SIGHUP → the new certificate for new connections, and a bad one, or a folder, changes nothing', async () => {
    const files = await writeFiles(`tls`, certificates);
    const environment = { TLS_CERT: files.cert, TLS_KEY: files.key };
    const service = await openVariant(findVariant('a'), provider, environment);
    await awaitReady(service);
    expect(service.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    const token = await provider.sign();
    const first = await getOverTls(service.port, { ca: certificates.ca }, token);
    expect(first.status).toBe(200);
    expect(await pipelineOverTls(service.port, certificates.ca, token)).toEqual(Array(3).fill('HTTP/1.1 200'));

    await writeFile(files.key, 'no key');
    service.signal('SIGHUP');
    const kept = () => service.logs.filter(({ event }) => event === 'tls_kept').length;
    await expect.poll(kept).toBe(1);
    await rm(files.key);
    await mkdir(files.key);
    service.signal('SIGHUP');
    await expect.poll(kept).toBe(2);
    expect(await getOverTls(service.port, { ca: certificates.ca }, token)).toEqual(first);

    await rmdir(files.key);
    const others = await createTestCertificates();
    await writeFiles(`tls`, others);
    service.signal('SIGHUP');
    await expect.poll(() => service.logs.filter(({ event }) => event === 'tls_reloaded').length).toBe(1);
    const second = await getOverTls(service.port, { ca: others.ca }, token);
    expect(second.status).toBe(200);
    expect(second.certificate).not.toBe(first.certificate);
    expect(await service.stop()).toBe(0);
    expect(JSON.stringify(service.logs)).not.toContain('no key');
  });

  it('changed TLS files without a signal → the new certificate for new connections', async () => {
    const files = await writeFiles(`watched`, certificates);
    const environment = { TLS_CERT: files.cert, TLS_KEY: files.key };
    const service = await openVariant(findVariant('a'), provider, environment);
    await awaitReady(service);
    const others = await createTestCertificates();
    await writeFiles(`watched`, others);
    const isReloaded = ({ event }: { readonly event?: unknown }) => event === 'tls_reloaded';
    await expect.poll(() => service.logs.filter(isReloaded).length, { timeout: 10_000 }).toBe(1);
    expect((await getOverTls(service.port, { ca: others.ca }, await provider.sign())).status).toBe(200);
    expect(await service.stop()).toBe(0);
  });

  it('expired certificate → a warning at startup, and its end as a metric', async () => {
    const files = await writeFiles(`expired`, await createTestCertificates({ from: -2, to: -1 }));
    const environment = { TLS_CERT: files.cert, TLS_KEY: files.key };
    const service = await openVariant(findVariant('a'), provider, environment);
    const { valid_to } = await service.findLog(({ event }) => event === 'tls_certificate_expired');
    await awaitReady(service);
    const { body } = await send(service.adminUrl ?? '', '/metrics');
    const expires = Number(/^portcullis_tls_certificate_expires_seconds (\S+)$/m.exec(body)?.[1]);
    expect(new Date(expires * 1000).toISOString()).toBe(valid_to);
    expect(await service.stop()).toBe(0);
  });

  it.each(['', '\x16\x03\x01'])('a client that sends %j and ends → its connection too, uncounted', async (bytes) => {
    const files = await writeFiles(`probed`, certificates);
    const environment = { TLS_CERT: files.cert, TLS_KEY: files.key };
    const service = await openVariant(findVariant('a'), provider, environment);
    const client = connect(service.port, '127.0.0.1');
    client.end(bytes).resume();
    await once(client, 'close');
    const { body } = await send(service.adminUrl ?? '', '/metrics');
    expect(body).not.toContain('portcullis_malformed_requests_total{');
    expect(await service.stop()).toBe(0);
  });

  it('SIGUSR1 → ignored by every process: no debugger', async () => {
    const service = await startVariant(findVariant('a'), provider, {});
    await awaitReady(service);
    for (const pid of [service.pid, ...findChildren(service.pid)]) process.kill(pid, 'SIGUSR1');
    expect((await send(service.url, '/api/public')).status).toBe(200);
    expect(await service.stop()).toBe(0);
    expect(service.stderr).not.toMatch(/debugger/i);
  });

  it('TLS_CLIENT_CA → only clients with a certificate of it, and a token that is bound to one is accepted', async () => {
    const client = await createClientCertificate();
    const files = await writeFiles(`mtls`, { ...certificates, ca: client.cert });
    const environment = { TLS_CERT: files.cert, TLS_KEY: files.key, TLS_CLIENT_CA: files.ca };
    const service = await openVariant(findVariant('a'), provider, environment);
    const { ca } = certificates;
    const get = async (token: string, own: object) => (await getOverTls(service.port, { ca, ...own }, token)).status;
    expect(await get(await provider.sign(), client)).toBe(200);
    const thumbprint = hash('sha256', new X509Certificate(client.cert).raw, 'base64url');
    expect(await get(await provider.sign({ cnf: { 'x5t#S256': thumbprint } }), client)).toBe(200);
    const foreign = await createClientCertificate();
    expect(await get(await provider.sign({ cnf: { 'x5t#S256': thumbprint.toLowerCase() } }), client)).toBe(401);
    await expect(get(await provider.sign(), {})).rejects.toThrow();
    await expect(get(await provider.sign(), foreign)).rejects.toThrow();
    const failed = await service.findLog(({ event }) => event === 'tls_handshake_failed');
    expect(failed).toMatchObject({ client_ip: '127.0.0.1', problem: expect.stringMatching(/^[A-Z_0-9]+$/) });
    const { body } = await send(service.adminUrl ?? '', '/metrics');
    expect(body).toMatch(/^portcullis_tls_handshake_failures_total 2$/m);
    expect(await service.stop()).toBe(0);
  });

  it('a socket of systemd → served; systemd-notify is called', async () => {
    const notes = join(folder, `notes`);
    const bin = await mkdtemp(join(folder, 'bin-'));
    await writeFile(join(bin, 'systemd-notify'), `#!/bin/sh\necho "$NOTIFY_SOCKET $*" >> ${notes}\n`);
    await chmod(join(bin, 'systemd-notify'), 0o755);
    const listener = createServer().listen(0, '127.0.0.1');
    await once(listener, 'listening');
    const { port } = listener.address() as { readonly port: number };
    const { fd } = (listener as unknown as { readonly _handle: { readonly fd: number } })._handle; // not in the types
    const main = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));
    const script = 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"';
    const child = spawn('/bin/sh', ['-c', script, process.execPath, main, 'serve'], {
      stdio: ['ignore', 'ignore', 'inherit', fd, 'ipc'],
      env: {
        ...readEnvironment(findVariant('a'), provider),
        ...{ PATH: `${bin}:${process.env['PATH']}`, NOTIFY_SOCKET: '/run/none', ADMIN_PORT: '0', PORT: '1' },
      },
    });
    const ended = superviseChild(child);
    const [{ url }] = (await once(child, 'message')) as [{ readonly url: string }];
    expect(url).toBe(`http://127.0.0.1:${port}`);
    listener.close();
    expect((await send(url, '/api/public')).status).toBe(200);
    child.kill('SIGTERM');
    expect(await ended).toEqual({ code: 0, signal: null });
    const said = await readFile(notes, 'utf8');
    expect(said.split('\n').filter(Boolean)).toEqual([
      `/run/none --pid=${child.pid} READY=1`,
      `/run/none --pid=${child.pid} STOPPING=1`,
    ]);
  });

  it('few open files → connections that are too many are closed with a line in the log and a count', async () => {
    const main = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));
    const script = 'ulimit -n 128; exec "$0" "$@"';
    const child = spawn('/bin/sh', ['-c', script, process.execPath, main, 'serve'], {
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
      env: {
        ...readEnvironment(findVariant('a'), provider),
        ...{ PATH: process.env['PATH'], HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: '0', KEEP_ALIVE: '60' },
      },
    });
    const ended = superviseChild(child);
    let log = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      log += text;
    });
    const [{ url, adminUrl }] = (await once(child, 'message')) as [{ readonly url: string; readonly adminUrl: string }];
    const counts = { open: 0, closed: 0 };
    const sockets = Array.from({ length: 200 }, () => {
      const socket = connect(Number(new URL(url).port), '127.0.0.1');
      counts.open++;
      socket.on('error', () => {});
      socket.once('close', () => counts.closed++);
      return socket;
    });
    const refused = async (): Promise<number> => {
      const { body } = await send(adminUrl, '/metrics');
      return Number(/^portcullis_connections_refused_total (\d+)$/m.exec(body)?.[1]);
    };
    await expect.poll(() => counts.closed).toBeGreaterThanOrEqual(200 - 64);
    // Those that were let in are closed later, as they send nothing.
    await expect.poll(refused, { timeout: 10_000 }).toBeGreaterThanOrEqual(200 - 64);
    expect(log).toContain('"connections_refused"');
    for (const socket of sockets) socket.destroy();
    await expect.poll(async () => (await send(url, '/api/public').catch(() => undefined))?.status).toBe(200);
    child.kill('SIGTERM');
    expect((await ended).code).toBe(0);
    expect(counts.open).toBe(200);
  });
});

describe('wrong settings of TLS', () => {
  it('a key that does not belong to the certificate → exit 78 with the reason', async () => {
    const [files, others] = [
      await writeFiles('pair', certificates),
      await writeFiles('other', await createTestCertificates()),
    ];
    const environment = { TLS_CERT: files.cert, TLS_KEY: others.key };
    const { end, stderr } = await startInVain(openVariant(findVariant('a'), provider, environment));
    expect(end.code).toBe(78);
    expect(stderr).toMatch(/TLS_CERT, TLS_KEY or TLS_CLIENT_CA cannot be used/);
  });
});

describe('Host on the admin listener', () => {
  it('/healthz and /readyz allow any Host; /metrics addresses, names of loopback and ADMIN_HOSTS', async () => {
    const service = await openVariant(findVariant('a'), provider, { ADMIN_HOSTS: 'Metrics.example, other.example' });
    await service.findLog(({ event }) => event === 'keys_fetched');
    const ask = async (path: string, host: string): Promise<number> =>
      (await send(service.adminUrl ?? '', path, { headers: ['Host', host] })).status;
    for (const host of ['evil.example', 'metrics.example', '127.0.0.1']) {
      expect(await ask('/healthz', host)).toBe(200);
      expect(await ask('/readyz', host)).toBe(200);
    }
    const known = words(`
      127.0.0.1:9464 10.0.0.1 [::1]:9464 localhost:9464 a.localhost METRICS.example:1 other.example
    `);
    for (const host of known) expect([host, await ask('/metrics', host)]).toEqual([host, 200]);
    const unknown = words(`
      evil.example 127.0.0.1.evil.example localhost.evil.example evillocalhost metrics.example.evil 1
    `);
    for (const host of unknown) expect([host, await ask('/metrics', host)]).toEqual([host, 421]);
    expect(await service.stop()).toBe(0);
  });
});
