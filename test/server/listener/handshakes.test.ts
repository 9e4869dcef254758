import { once } from 'node:events';
import { createServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { errorBodyFormats } from '../../../src/core/refusal/error-body.ts';
import { type Listener, listen } from '../../../src/server/listener/listener.ts';
import { useFolder } from '../../support/folder.ts';
import { createTestCertificates, type TestCertificates } from '../../support/tls.ts';

let certificates: TestCertificates;
let listener: Listener;
const malformed: number[] = [];
let open = 0;

beforeAll(async () => {
  certificates = await createTestCertificates();
  const { cert, key } = certificates;
  listener = await listen({
    onRequest: (_, outgoing) => void outgoing.end('ok'),
    ...{ host: '127.0.0.1', port: 0, keepAlive: 5, errorBody: errorBodyFormats.detail },
    createTlsServer: (options) => createServer({ ...options, cert, key, handshakeTimeout: 300 }),
    onMalformed: (status) => malformed.push(status),
    onConnection: (change) => {
      open += change;
    },
  });
});
afterAll(() => listener.close(0));

/** Resolves when the service has closed the connection. */
async function send(bytes: string): Promise<Socket> {
  const socket = connect(Number(new URL(listener.url).port), '127.0.0.1');
  socket.on('error', () => {}); // reset, perhaps
  socket.resume();
  await once(socket, 'connect');
  if (bytes !== '') socket.write(Buffer.from(bytes, 'latin1'));
  if (!socket.closed) await once(socket, 'close');
  return socket;
}

describe('a connection that never comes to TLS', () => {
  it.each([
    ['nothing is sent', '', 408],
    ['half a greeting', '\x16\x03\x01', 408],
    ['HTTP without TLS', 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n', 400],
    ['neither', 'zzzzzzzzzzzzzzzz', 400],
  ])('%s → closed, and counted', async (_claim, bytes, status) => {
    const before = malformed.length;
    await send(bytes);
    await expect.poll(() => open).toBe(0);
    expect(malformed.slice(before)).toEqual([status]);
  });

  it('an invalid request over TLS → the same response as without TLS', async () => {
    const { port } = new URL(listener.url);
    const socket = connectTls({ port: Number(port), host: '127.0.0.1', ca: certificates.ca });
    await once(socket, 'secureConnect');
    socket.write('zzz\r\n\r\n');
    let answer = '';
    for await (const chunk of socket.setEncoding('latin1')) answer += chunk;
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  });
});

const folder = useFolder();

it('handshakes over a unix socket at the same time → each client gets its response', async () => {
  const { ca, cert, key } = certificates;
  const path = join(folder, 'socket');
  const own = await listen({
    onRequest: ({ url }, outgoing) => void outgoing.end(url),
    ...{ host: `unix:${path}`, port: 0, keepAlive: 5, errorBody: errorBodyFormats.detail },
    createTlsServer: (options) => createServer({ ...options, cert, key }),
  });
  onTestFinished(() => own.close(0));
  const answers = ['/1', '/2', '/3'].map((target) => {
    const socket = connectTls({ socket: connect(path), ca, host: 'localhost' });
    socket.write(`GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
    return text(socket).catch(String);
  });
  const bodies = (await Promise.all(answers)).map((answer) => answer.slice(answer.lastIndexOf('\n') + 1));
  expect(bodies).toEqual(['/1', '/2', '/3']);
});
