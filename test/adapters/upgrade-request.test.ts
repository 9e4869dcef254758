import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { toUpgradeRequest } from '../../src/adapters/node.ts';

function receive(...rawHeaders: string[]) {
  return Object.assign(new IncomingMessage(new Socket()), { method: 'GET', url: '/chat', rawHeaders });
}

it.each([
  ['chat, bearer, abc', [], 'Bearer abc'],
  ['bearer,abc,chat', [], 'Bearer abc'],
  ['chat', [], null],
  ['chat', ['Authorization', 'DPoP abc'], 'DPoP abc'],
  ['chat, bearer', [], 'Bearer '],
  ['bearer, abc, bearer, def', [], 'Bearer abc, Bearer def'],
  ['bearer, abc', ['Authorization', 'Bearer def'], 'Bearer def, Bearer abc'],
])('subprotocols %s and headers %j → Authorization %j', (protocols, headers, authorization) => {
  const request = toUpgradeRequest(receive('Host', 'api.test', 'Sec-WebSocket-Protocol', protocols, ...headers));
  expect(request.headers.get('Authorization')).toBe(authorization);
  expect(request.headers.get('sec-websocket-protocol')).toBe(protocols);
  expect([request.method, request.url]).toEqual(['GET', 'http://api.test/chat']);
});

it('no subprotocol → the request unchanged', () => {
  expect(toUpgradeRequest(receive('Host', 'api.test', 'Authorization', 'Bearer a')).headers.get('authorization')).toBe(
    'Bearer a',
  );
});
