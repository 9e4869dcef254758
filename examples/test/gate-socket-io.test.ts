import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Server } from 'socket.io';
import { io } from 'socket.io-client';
import { expect, it, onTestFinished } from 'vitest';
import { startGate } from '../../test/support/gate-process.ts';
import { startTestProvider } from '../../test/support/test-provider.ts';

it('a token that expires → transport close, and the client connects again by itself with the new token', async () => {
  const upstream = createServer();
  const sockets = new Server(upstream, { path: '/token/socket.io' });
  await once(upstream.listen(0, '127.0.0.1'), 'listening');
  const { port } = upstream.address() as AddressInfo; // it listens on TCP
  const provider = await startTestProvider();
  const issuers = { idp: { issuer: provider.issuer, audience: provider.audience } };
  const rules = { issuers, rules: [{ id: 'token', path: '/token/**', webSocketToken: 'protocol' }] };
  const gate = await startGate(provider, rules, { UPSTREAM: `http://127.0.0.1:${port}`, CLOCK_TOLERANCE: '0' });
  onTestFinished(async () => void (await Promise.all([gate.stop(), sockets.close(), provider.close()])));
  const [token, short] = [await provider.sign(), await provider.sign({ exp: Math.floor(Date.now() / 1000) + 3 })];
  const options = { path: '/token/socket.io', transports: ['websocket'], reconnectionDelay: 20 };
  const client = io(gate.url, { ...options, protocols: ['bearer', short] });
  onTestFinished(() => void client.close());
  const seen: string[] = [];
  client.on('connect', () => seen.push('connect'));
  client.on('disconnect', (reason) => {
    seen.push(reason);
    client.io.opts.protocols = ['bearer', token];
  });
  await expect.poll(() => seen).toEqual(['connect', 'transport close', 'connect']);
});
