import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { send } from '../../support/http-client.ts';
import { type ServiceProcess, startService } from '../../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../../support/test-provider.ts';
import { findVariant, startVariant } from '../../support/variant-service.ts';

/** Bytes of each body; the kernel takes a few MiB of them. */
const bodyBytes = 300_000_000;
/** MiB: young garbage of a busy host included, which a body of 300 MB that is held exceeds many times over. */
const maxGrowth = 24;

let provider: TestProvider;
const sockets: Socket[] = [];
const servers: Server[] = [];
const services: ServiceProcess[] = [];

beforeAll(async () => {
  provider = await startTestProvider();
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const service of services.splice(0)) await service.kill();
  for (const server of servers.splice(0)) server.close();
});
afterAll(() => provider.close());

/** MiB of memory of the service. */
function readMemory({ pid }: ServiceProcess): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

async function listenOn(server: Server): Promise<number> {
  servers.push(server.listen(0, '127.0.0.1'));
  await once(server, 'listening');
  const address = server.address();
  return typeof address === 'object' ? (address?.port ?? 0) : 0;
}

/** Accepts connections and never reads. */
const listenWithoutReading = (): Promise<number> =>
  listenOn(createServer({ pauseOnConnect: true }, (socket) => void sockets.push(socket.on('error', () => {}))));

/** Sends a body for as long as the service takes bytes, and returns how much its memory grew in MiB. */
async function grow(service: ServiceProcess, head: string): Promise<number> {
  const socket = connect(service.port, '127.0.0.1').on('error', () => {});
  sockets.push(socket);
  const before = readMemory(service);
  socket.write(head);
  const part = Buffer.alloc(1_000_000, 0x61);
  let most = 0;
  let sent = 0;
  for (let quiet = 0; quiet < 10 && sent < bodyBytes && !socket.destroyed; ) {
    const { bytesWritten } = socket;
    if (socket.writableLength < part.length) {
      socket.write(part);
      sent += part.length;
    }
    await sleep(1);
    if (socket.bytesWritten === bytesWritten && socket.writableLength > 0) {
      quiet++;
      await sleep(50);
    } else quiet = 0;
    most = Math.max(most, readMemory(service));
  }
  return most - before;
}

/** Loads the code of a request by 20 requests whose clients disconnect: its memory does not belong to a body. */
async function warmUp({ port }: ServiceProcess, request: string): Promise<void> {
  for (let index = 0; index < 20; index++) {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    socket.write(request);
    await sleep(20);
    socket.destroy();
  }
}

const canMeasure = process.platform === 'linux';

describe.runIf(canMeasure)('a body that is not read', () => {
  it.each(['Content-Length: 300000000', 'Transfer-Encoding: chunked'])(
    `the gate as the proxy, an upstream that never reads, %s → memory grows by at most ${maxGrowth} MiB`,
    async (framing) => {
      const port = await listenWithoutReading();
      const service = await startService({
        command: 'gate',
        args: ['--issuer', provider.issuer, '--audience', provider.audience, '--upstream', `http://127.0.0.1:${port}`],
        environment: { NODE_EXTRA_CA_CERTS: provider.caFile },
      });
      services.push(service);
      const token = await provider.sign();
      const chunk = framing.startsWith('T') ? `${bodyBytes.toString(16)}\r\n` : '';
      const request = `POST / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n`;
      await warmUp(service, `${request}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n`);
      const head = `${request}${framing}\r\n\r\n${chunk}`;
      expect(await grow(service, head)).toBeLessThan(maxGrowth);
    },
  );

  it(`the service, an unknown kid during a slow fetch of keys → memory grows by at most ${maxGrowth} MiB`, async () => {
    const service = await startVariant(findVariant('a'), provider, {});
    services.push(service);
    const valid = await provider.sign();
    const headers = ['Authorization', `Bearer ${valid}`];
    expect((await send(service.url, '/api/private', { headers })).status).toBe(200);
    const [, payload, signature] = valid.split('.');
    provider.inject('hang');
    const header = Buffer.from(JSON.stringify({ alg: 'RS256', kid: 'unknown' })).toString('base64url');
    const token = `${header}.${payload}.${signature}`;
    const head = `GET /api/private HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nContent-Length: ${bodyBytes}\r\n\r\n`;
    const growth = await grow(service, head);
    provider.mend();
    expect(growth).toBeLessThan(maxGrowth);
  });
});
