import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listen } from '../../support/listening.ts';
import { type ServiceProcess, startService } from '../../support/service-process.ts';
import { useTestProvider } from '../../support/test-provider.ts';
import { findVariant, startVariant } from '../../support/variant-service.ts';

const megabyte = 1_000_000;
const tries = 2;

const provider = await useTestProvider();
let upstream: Awaited<ReturnType<typeof listen>>;
const services: ServiceProcess[] = [];

beforeAll(async () => {
  upstream = await listen(
    createServer((incoming, outgoing) => incoming.resume().once('end', () => outgoing.end('{}'))),
  );
});
afterAll(async () => {
  await Promise.all(services.map((service) => service.kill()));
  await upstream.close();
});

async function startGate(): Promise<ServiceProcess> {
  return startService({
    command: 'gate',
    args: ['--issuer', provider.issuer, '--audience', provider.audience, '--upstream', upstream.origin],
    environment: { NODE_EXTRA_CA_CERTS: provider.caFile },
  });
}

/** Sends a complete upload before it reads, as blocking clients do. Resolves with the status, or the error. */
async function uploadBlocking(port: number, head: string, bytes: number): Promise<string> {
  const socket = connect(port, '127.0.0.1').pause();
  let failed: Error | undefined;
  socket.on('error', (error) => {
    failed = error;
  });
  await once(socket, 'connect');
  socket.write(head);
  await new Promise<void>((resolve) => {
    socket.once('close', () => resolve()).write(Buffer.alloc(bytes, 0x61), () => resolve());
  });
  let text = '';
  socket.setEncoding('latin1').on('data', (part: string) => {
    text += part;
    if (text.includes('\r\n\r\n')) socket.destroy();
  });
  socket.resume();
  if (!socket.closed) await once(socket, 'close');
  return /^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? String(failed);
}

describe.each([
  ['serve', 405, () => startVariant(findVariant('a'), provider)],
  ['the gate as the proxy', 401, startGate],
] as const)('%s: a refused upload', (_name, status, start) => {
  const all = Array.from({ length: tries }, () => String(status));
  let service: ServiceProcess;
  beforeAll(async () => {
    service = await start();
    services.push(service);
  });

  it(`of 16 MB by fetch → ${status}, in each of ${tries} tries`, async () => {
    const body = Buffer.alloc(16 * megabyte, 0x61);
    const headers = { authorization: 'Bearer a.b.c' };
    const statuses: string[] = [];
    for (let i = 0; i < tries; i++) {
      try {
        const answer = await fetch(`${service.url}/api/private`, { method: 'POST', headers, body });
        await answer.text();
        statuses.push(String(answer.status));
      } catch (error) {
        statuses.push(String(error instanceof Error ? error.cause : error));
      }
    }
    expect(statuses).toEqual(all);
  });

  it.each([
    ['Content-Length: 16000000', 16 * megabyte, ''],
    ['Connection: close\r\nContent-Length: 16000000', 16 * megabyte, ''],
    ['Transfer-Encoding: chunked', 5 * megabyte, `${(5 * megabyte).toString(16)}\r\n`],
  ])(`%s, by a client that sends everything before it reads → ${status}`, async (framing, bytes, chunk) => {
    const head = `POST /api/private HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a.b.c\r\n${framing}\r\n\r\n${chunk}`;
    const statuses: string[] = [];
    for (let i = 0; i < tries; i++) statuses.push(await uploadBlocking(service.port, head, bytes));
    expect(statuses).toEqual(all);
  });
});
