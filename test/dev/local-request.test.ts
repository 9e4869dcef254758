import { expect, test } from 'vitest';
import { isLocalRequest, isLoopbackOrigin } from '../../src/dev/provider/local-request.ts';

test.each([
  ['127.0.0.1', 'localhost:9443', true],
  ['127.0.0.1', 'LOCALHOST', true],
  ['127.8.9.1', '127.0.0.1:9443', true],
  ['::ffff:127.0.0.1', 'localhost:9443', true],
  ['::1', 'localhost:9443', true],
  ['192.0.2.1', 'localhost:9443', false],
  ['::ffff:192.0.2.1', 'localhost:9443', false],
  ['1270.0.0.1', 'localhost:9443', false],
  ['::11', 'localhost:9443', false],
  [undefined, 'localhost:9443', false],
  ['127.0.0.1', undefined, false],
  ['127.0.0.1', '', false],
  ['127.0.0.1', 'localhost:9443@attacker.example', false],
  ['127.0.0.1', 'localhost.attacker.example', false],
  ['127.0.0.1', 'attacker.example:9443', false],
  ['127.0.0.1', 'localhost:', false],
])('isLocalRequest: peer %s, Host %s → %s', (peer, host, local) => expect(isLocalRequest(peer, host)).toBe(local));

test.each([
  ['http://localhost:3000', true],
  ['https://localhost', true],
  ['http://127.0.0.1:5173', true],
  ['http://[::1]:8080', true],
  ['null', false],
  ['https://localhost.attacker.example', false],
  ['https://attacker.example/http://localhost', false],
  ['ftp://localhost', false],
])('isLoopbackOrigin: %s → %s', (origin, loopback) => expect(isLoopbackOrigin(origin)).toBe(loopback));
