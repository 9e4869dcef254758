import { spawn } from 'node:child_process';
import { createHash, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { Agent, type RequestOptions, request } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { readNodeRequest } from '../../../src/adapters/node-request.ts';
import { createResourceServer } from '../../../src/core/resource-server/resource-server.ts';
import { createTestIssuer } from '../../../src/testing/index.ts';
import { findFreePort } from '../../../tools/shared/network.js';
import { needs, requireProgram } from '../../support/programs.ts';
import { superviseChild } from '../../support/service-process.ts';
import { createTestCertificates, type TestCertificates } from '../../support/tls.ts';

const page = readFileSync(new URL('../../../docs/other-proofs.md', import.meta.url), 'utf8');
/** The lines that the documentation has for HAProxy, with this place and these files. */
const documented = /```haproxy\n([\s\S]*?)```/.exec(page)?.[1] ?? '';

describe('client certificates behind HAProxy', needs('haproxy'), () => {
  const issuer = createTestIssuer();
  let ours: TestCertificates;
  let others: TestCertificates;
  let folder: string;
  let port: number;
  let api: Server;
  let stop: () => Promise<void>;
  let bound: { readonly authorization: string };

  beforeAll(async () => {
    [ours, others] = [await createTestCertificates(), await createTestCertificates()];
    const thumbprint = createHash('sha256').update(new X509Certificate(ours.cert).raw).digest('base64url');
    bound = issuer.headers({ cnf: { 'x5t#S256': thumbprint } });
    api = await startApi();
    folder = await mkdtemp(join(tmpdir(), 'portcullis-haproxy-'));
    port = await findFreePort();
    const file = join(folder, 'haproxy.cfg');
    await writeFile(join(folder, 'server.pem'), `${ours.cert}\n${ours.key}`, { mode: 0o600 });
    await writeFile(join(folder, 'clients.pem'), ours.ca);
    await writeFile(file, configure());
    const child = spawn(requireProgram('haproxy'), ['-db', '-f', file], { stdio: 'ignore' });
    const ended = superviseChild(child);
    stop = async () => {
      child.kill('SIGTERM');
      await ended;
    };
    await vi.waitFor(
      async () => {
        const socket = connect(port, '127.0.0.1');
        await once(socket, 'connect');
        socket.destroy();
      },
      { timeout: 20_000 },
    );
  });
  afterAll(async () => {
    await stop();
    api.closeAllConnections();
    await new Promise((resolve) => api.close(resolve));
    await rm(folder, { recursive: true });
  });

  async function startApi(): Promise<Server> {
    const trusting = { clientCertificate: 'header', trustProxy: ['127.0.0.1'] } as const;
    const server = createResourceServer({ issuers: [issuer], audience: issuer.audience, ...trusting });
    const listener = createServer((incoming, response) => {
      const judged = readNodeRequest(incoming);
      Promise.resolve()
        .then(() => server.authorize(judged, {}, incoming.socket))
        .then(
          () => response.end('accepted'),
          (error: unknown) => response.end(server.describeRefusal(error, judged).reason),
        );
    });
    await once(listener.listen(0, '127.0.0.1'), 'listening');
    return listener;
  }

  function configure(): string {
    const { port: upstream } = api.address() as AddressInfo; // it listens on TCP
    const edge = documented
      .replace('0.0.0.0:443', `127.0.0.1:${port}`)
      .replace('server.pem', join(folder, 'server.pem'))
      .replace('clients.pem', join(folder, 'clients.pem'));
    const timeouts = ['client', 'server', 'connect'].map((name) => `  timeout ${name} 5s`).join('\n');
    return `global\n  maxconn 64\ndefaults\n  mode http\n${timeouts}\n${edge}  default_backend api\nbackend api\n  server one 127.0.0.1:${upstream}\n`;
  }

  async function call(options: RequestOptions, headers: RequestOptions['headers'] = {}): Promise<string> {
    const all = { ca: ours.ca, agent: false as const, headers: { ...bound, ...headers }, ...options };
    const [response] = (await once(request(`https://localhost:${port}/`, { family: 4, ...all }).end(), 'response')) as [
      IncomingMessage,
    ];
    return text(response);
  }

  it('the certificate of the token → accepted, over a session that is resumed too', async () => {
    const agent = new Agent({ ca: ours.ca, cert: ours.cert, key: ours.key });
    for (let i = 0; i < 3; i++) expect(await call({ agent })).toBe('accepted');
    agent.destroy();
  });

  it('none, another, and a header of the client’s own → refused', async () => {
    const header = { 'client-cert': `:${new X509Certificate(ours.cert).raw.toString('base64')}:` };
    expect(await call({})).toBe('missing_client_certificate');
    expect(await call({}, header)).toBe('missing_client_certificate');
    const other = { cert: others.cert, key: others.key };
    expect(await call(other)).toBe('client_certificate_mismatch');
    expect(await call(other, header)).toBe('client_certificate_mismatch');
  });
});
