import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { connect as connectTls, createServer } from 'node:tls';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { errorBodyFormats } from '../../../src/core/refusal/error-body.ts';
import { createHttpServer } from '../../../src/server/listener/http-server.ts';
import { stopAccepting } from '../../../src/server/listener/listener.ts';
import { createTestCertificates, type TestCertificates } from '../../support/tls.ts';

/** Longer than any test may take: what ends before it has not waited for it. */
const grace = 300;
const request = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
let certificates: TestCertificates;
beforeAll(async () => {
  certificates = await createTestCertificates();
});

/** Answers by hand, so that a test says when. */
type Answer = (body: string) => void;
const answers: Answer[] = [];
const clients: Socket[] = [];
beforeEach(
  () =>
    void vi.useFakeTimers({
      ...{ shouldAdvanceTime: true, toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] },
    }),
);
afterEach(() => {
  vi.useRealTimers();
  answers.length = 0;
  for (const client of clients.splice(0)) client.destroy();
});

async function open(scheme: 'http' | 'https') {
  const http = createHttpServer({
    keepAlive: grace,
    errorBody: errorBodyFormats.detail,
    firstByteTimeout: 0.05,
    onRequest: (_incoming, outgoing) => void answers.push((body) => outgoing.end(body)),
    ...(scheme === 'https' && { createTlsServer: (options) => createServer({ ...options, ...certificates }) }),
  });
  http.acceptor.listen(0, '127.0.0.1');
  await once(http.acceptor, 'listening');
  return { ...http, port: (http.acceptor.address() as AddressInfo).port }; // it listens on TCP
}

async function call(port: number, scheme: 'http' | 'https'): Promise<Socket & { received: string }> {
  const socket =
    scheme === 'https'
      ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
      : connect(port, '127.0.0.1');
  await once(socket, scheme === 'https' ? 'secureConnect' : 'connect');
  const client = Object.assign(socket, { received: '' });
  client.setEncoding('utf8').on('data', (text: string) => {
    client.received += text;
  });
  clients.push(client);
  return client;
}

/** Resolves once the server of the test has begun to finish. */
let finishing: Promise<unknown>;
let begin: (value?: unknown) => void;
beforeEach(() => {
  finishing = new Promise((resolve) => {
    begin = resolve;
  });
});

/** Lets milliseconds pass on the server's clock, once it has begun to finish. */
async function pass(milliseconds: number): Promise<void> {
  await finishing;
  await vi.advanceTimersByTimeAsync(milliseconds);
}

/** Ends the server as SIGTERM does. */
async function end(http: Awaited<ReturnType<typeof open>>): Promise<void> {
  await stopAccepting(http.acceptor);
  const finished = http.finish(grace);
  begin();
  await finished;
}

describe.each(['http', 'https'] as const)('the end of a server, %s', (scheme) => {
  it('a large response that is written and not read yet → complete, and shutdown waits for it', async () => {
    const http = await open(scheme);
    const client = await call(http.port, scheme);
    client.write(request);
    await expect.poll(() => answers.length).toBe(1);
    client.pause();
    answers[0]?.('x'.repeat(20_000_000));
    const over = end(http);
    // Longer than several sweeps.
    await pass(500);
    client.resume();
    await over;
    await expect.poll(() => client.received.replace(/^.*?\r\n\r\n/s, '').length).toBe(20_000_000);
  });

  it('a connection on which nothing was ever sent → closed, and the end does not wait for the grace', async () => {
    const http = await open(scheme);
    const client = await call(http.port, scheme);
    await end(http);
    await once(client, 'close');
    expect(client.received).toBe('');
  });

  it('an idle connection after a response → closed', async () => {
    const http = await open(scheme);
    const client = await call(http.port, scheme);
    client.write(request);
    await expect.poll(() => answers.length).toBe(1);
    answers[0]?.('done');
    await expect.poll(() => client.received).toContain('done');
    await end(http);
    expect(client.received).toMatch(/^connection: keep-alive\r$/im);
  });

  it('a request in flight → response with connection: close, and shutdown waits for it', async () => {
    const http = await open(scheme);
    const client = await call(http.port, scheme);
    client.write(request);
    await expect.poll(() => answers.length).toBe(1);
    let ended = false;
    const over = end(http).then(() => {
      ended = true;
    });
    // Longer than an unused connection has.
    await pass(300);
    expect(ended).toBe(false);
    answers[0]?.('late');
    await over;
    await expect.poll(() => client.received).toContain('late');
    expect(client.received).toMatch(/^connection: close\r$/im);
  });

  it('a request of which only a part has come → the rest may still come, and gets a response', async () => {
    const http = await open(scheme);
    const client = await call(http.port, scheme);
    client.write(request.slice(0, 10));
    const over = end(http);
    await pass(300);
    client.write(request.slice(10));
    await expect.poll(() => answers.length).toBe(1);
    answers[0]?.('whole');
    await over;
    await expect.poll(() => client.received).toContain('whole');
  });
});

it('a TLS handshake that is left half done → closed, and the end does not wait for the grace', async () => {
  const http = await open('https');
  const client = connect(http.port, '127.0.0.1');
  clients.push(client);
  client.write(Buffer.from('160301020001', 'hex')); // a record begins, and in it a ClientHello
  const [accepted] = (await once(http.acceptor, 'connection')) as [Socket];
  await expect.poll(() => accepted.bytesRead).toBeGreaterThan(0);
  const closed = once(client, 'close');
  await end(http);
  await closed;
});

it('two requests on one connection → only the last response says that it is the last', async () => {
  const http = await open('http');
  const client = await call(http.port, 'http');
  client.write(request + request);
  await expect.poll(() => answers.length).toBe(1);
  await stopAccepting(http.acceptor);
  const over = http.finish(grace);
  answers[0]?.('x');
  await expect.poll(() => answers.length).toBe(2);
  answers[1]?.('x');
  await over;
  await expect.poll(() => client.readableEnded).toBe(true);
  expect(client.received.match(/^connection: \S+/gim)?.map((line) => line.toLowerCase())).toEqual([
    'connection: keep-alive',
    'connection: close',
  ]);
});
