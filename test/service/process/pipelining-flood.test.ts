import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { send } from '../../support/http-client.ts';
import type { ServiceProcess } from '../../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../../support/test-provider.ts';
import { findVariant, startVariant } from '../../support/variant-service.ts';

const connections = 1300;
const request = 'GET /api/private HTTP/1.1\r\nHost: localhost\r\n\r\n';
/** One read of the service: what the kernel hands over at once. */
const oneRead = request.repeat(Math.floor(65_536 / request.length));

let provider: TestProvider;
let service: ServiceProcess;
const sockets: Socket[] = [];

beforeAll(async () => {
  provider = await startTestProvider();
  // From version 24 on Node lets up to 128 MiB of young garbage lie, which says nothing of what is held.
  const young = Number(process.versions.node.split('.')[0]) < 24 ? '' : ' --max-semi-space-size=4';
  const environment = { ADMIN_PORT: '0', KEEP_ALIVE: '1', NODE_OPTIONS: `--max-old-space-size=512${young}` };
  service = await startVariant(findVariant('a'), provider, environment);
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await service.stop();
  await provider.close();
});

/** MiB; undefined if the system does not tell. */
function readMemory(): number | undefined {
  const file = `/proc/${service.pid}/status`;
  if (!existsSync(file)) return undefined;
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(file, 'utf8'))?.[1]) / 1024;
}

describe('1,300 connections that pipeline and never read', () => {
  it('the service lives, holds at most 200 MiB, answers good calls, and is rid of the connections', {
    timeout: 60_000,
  }, async () => {
    for (let i = 0; i < connections; i++) {
      const socket = connect(service.port, '127.0.0.1').pause();
      socket.on('error', () => {}); // those above the limit are reset
      sockets.push(socket);
      await once(socket, 'connect');
      socket.write(oneRead);
    }
    const headers = ['Authorization', `Bearer ${await provider.sign()}`];
    let most = 0;
    for (let i = 0; i < 50; i++) {
      expect((await send(service.url, '/api/private', { headers })).status).toBe(200);
      most = Math.max(most, readMemory() ?? 0);
    }
    expect(most).toBeLessThan(200);
    // What the kernel has taken is read now; the ends of the connections stand behind it.
    const closed = sockets.map((socket) => socket.closed || new Promise((resolve) => socket.once('close', resolve)));
    for (const socket of sockets) socket.resume();
    await Promise.all(closed);
    const countConnections = async (): Promise<number> => {
      const { body } = await send(service.adminUrl ?? '', '/metrics');
      return Number(/^portcullis_connections (\d+)$/m.exec(body)?.[1]);
    };
    await expect.poll(countConnections, { timeout: 10_000 }).toBe(0);
    expect((await send(service.url, '/api/private', { headers })).status).toBe(200);
  });
});
