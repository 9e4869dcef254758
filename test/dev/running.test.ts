import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { createServer, type Server } from 'node:https';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { LocalIdpFailure } from '../../src/dev/provider/failure.ts';
import { ensureIdentity, type Identity } from '../../src/dev/provider/identity.ts';
import { createIdpClient } from '../../src/dev/provider/idp-client.ts';
import { announceRunning, findRunning } from '../../src/dev/provider/running.ts';
import { listen, stop } from '../../tools/shared/network.js';
import { useFolder } from '../support/folder.ts';

const now = Math.floor(Date.now() / 1000);
const servers: Server[] = [];
const base = useFolder();
let cacheFolder: string;
let identity: Identity;

beforeEach(async () => {
  cacheFolder = await mkdtemp(join(base, 'each-'));
  identity = await ensureIdentity(cacheFolder, now);
});
afterEach(async () => {
  for (const server of servers.splice(0)) await stop(server);
});

/** Something that answers on TLS with the certificate of an identity; its issuer. */
async function serve(answer: (issuer: string) => RequestListener, { certificate, key }: Identity = identity) {
  const server = createServer({ cert: certificate, key });
  servers.push(server);
  const issuer = `https://localhost:${await listen(server)}/`;
  server.on('request', answer(issuer));
  return issuer;
}

const provider =
  (issuer: string): RequestListener =>
  (_request, response) =>
    void response.end(JSON.stringify({ issuer }));
const announce = (issuer: string, started: number) => announceRunning(cacheFolder, { issuer, started });

test('nothing was ever started → none', async () => {
  await rm(join(cacheFolder, 'identity'), { recursive: true });
  expect(await findRunning(cacheFolder)).toBeUndefined();
});

test('nothing runs → none', async () => expect(await findRunning(cacheFolder)).toBeUndefined());

test('several run → the one that was started last, until it withdraws', async () => {
  const [first, second] = [await serve(provider), await serve(provider)];
  await announce(second, now);
  const withdraw = await announce(first, now + 1);
  expect((await findRunning(cacheFolder))?.issuer).toBe(first);
  await withdraw();
  expect((await findRunning(cacheFolder))?.issuer).toBe(second);
});

test('several run, one is named → that one', async () => {
  const [first, second] = [await serve(provider), await serve(provider)];
  await announce(first, now + 1);
  await announce(second, now);
  expect((await findRunning(cacheFolder, second))?.issuer).toBe(second);
});

test('killed ones and foreign files among them → passed over', async () => {
  const alive = await serve(provider);
  await announce(alive, now);
  await announce('https://localhost:1/', now + 1);
  await mkdir(join(cacheFolder, 'running', 'folder.json'));
  for (const [name, content] of Object.entries({
    'empty.json': '',
    'null.json': 'null',
    'number.json': '{"issuer":1,"started":2}',
    'no-url.json': `{"issuer":"localhost","started":${now + 2}}`,
    'no-time.json': '{"issuer":"https://localhost:1/"}',
  })) {
    await writeFile(join(cacheFolder, 'running', name), content);
  }
  expect((await findRunning(cacheFolder))?.issuer).toBe(alive);
});

test.each<[string, (issuer: string) => RequestListener]>([
  ['another issuer', () => provider('https://localhost:1/')],
  ['no JSON', () => (_request, response) => void response.end('<html>')],
  ['JSON null', () => (_request, response) => void response.end('null')],
  ['a connection that is cut', () => (request) => void request.socket.destroy()],
])('the port is used by something else (%s) → none', async (_name, answer) => {
  const issuer = await serve(answer);
  await announce(issuer, now);
  expect(await findRunning(cacheFolder)).toBeUndefined();
  expect(await findRunning(cacheFolder, issuer)).toBeUndefined();
});

test('another certificate → none: the secret is not sent to it', async () => {
  const other = join(cacheFolder, 'other');
  await mkdir(other);
  const issuer = await serve(provider, await ensureIdentity(other, now));
  await announce(issuer, now);
  expect(await findRunning(cacheFolder)).toBeUndefined();
});

test.each([{ scope: 'read:messages' }, { validity: 'expired' } as const])(
  'provider that refuses the order %j → LocalIdpFailure with the status',
  async (order) => {
    const issuer = await serve(() => (_request, response) => void response.writeHead(400).end('{"error":"refused"}'));
    const refused = createIdpClient(issuer, identity).getToken(order);
    await expect(refused).rejects.toThrow(LocalIdpFailure);
    await expect(refused).rejects.toThrow('status 400');
  },
);

test('provider that has gone → LocalIdpFailure', () =>
  expect(createIdpClient('https://localhost:1/', identity).getToken({})).rejects.toThrow('does not respond'));
