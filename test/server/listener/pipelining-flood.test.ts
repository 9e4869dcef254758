import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { send } from '../../support/http-client.ts';
import type { ServiceProcess } from '../../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../../support/test-provider.ts';
import { findVariant, startVariant } from '../../support/variant-service.ts';

const connections = 1300;
const request = 'GET /api/private HTTP/1.1\r\nHost: localhost\r\n\r\n';
/** One read of the service: as much as the kernel passes at once. */
const oneRead = request.repeat(Math.floor(65_536 / request.length));
/** Node 24 and later hold more in each connection. */
const maxMebibytes = Number(process.versions.node.split('.')[0]) < 24 ? 200 : 300;

let provider: TestProvider;
let service: ServiceProcess;
const sockets: Socket[] = [];

beforeAll(async () => {
  provider = await startTestProvider();
});
beforeEach(async () => {
  // From version 24 on Node lets up to 128 MiB of young garbage lie, which says nothing of what is held.
  const young = Number(process.versions.node.split('.')[0]) < 24 ? '' : ' --max-semi-space-size=4';
  const environment = { ADMIN_PORT: '0', KEEP_ALIVE: '1', NODE_OPTIONS: `--max-old-space-size=512${young}` };
  service = await startVariant(findVariant('a'), provider, environment);
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await service.stop();
});
afterAll(() => provider.close());

/** MiB; undefined if the system does not report it. */
function readMemory(): number | undefined {
  const file = `/proc/${service.pid}/status`;
  if (!existsSync(file)) return undefined;
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(file, 'utf8'))?.[1]) / 1024;
}

async function connectOne(): Promise<Socket> {
  const socket = connect(service.port, '127.0.0.1').pause();
  socket.on('error', () => {}); // those above the part of one peer are reset
  sockets.push(socket);
  await once(socket, 'connect');
  return socket;
}

/** Sends one request from another address than the flood, and returns its status. */
async function getAsOther(token: string): Promise<number | undefined> {
  const outgoing = get({
    ...{ host: '127.0.0.1', localAddress: '127.0.0.2', port: service.port, path: '/api/private', agent: false },
    headers: { authorization: `Bearer ${token}` },
  });
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
  await once(incoming.resume(), 'end');
  return incoming.statusCode;
}

const floods = {
  'one client after the other': async () => {
    for (let i = 0; i < connections; i++) (await connectOne()).write(oneRead);
  },
  'all connected first, then sending at once': async () => {
    for (let i = 0; i < connections; i++) await connectOne();
    for (const socket of sockets) socket.write(oneRead);
  },
};

describe('1,300 connections that pipeline and never read', () => {
  it.each(Object.entries(floods))(
    `%s → the service responds to another client, holds at most ${maxMebibytes} MiB, and closes the connections`,
    { timeout: 300_000 },
    async (_name, flood) => {
      const token = await provider.sign();
      await flood();
      let most = 0;
      for (let i = 0; i < 50; i++) {
        expect(await getAsOther(token)).toBe(200);
        most = Math.max(most, readMemory() ?? 0);
      }
      expect(most).toBeLessThan(maxMebibytes);
      const countConnections = async (): Promise<number> => {
        const { body } = await send(service.adminUrl ?? '', '/metrics');
        return Number(/^portcullis_connections (\d+)$/m.exec(body)?.[1]);
      };
      await expect.poll(countConnections, { timeout: 240_000 }).toBe(0);
      expect(await getAsOther(token)).toBe(200);
    },
  );
});
