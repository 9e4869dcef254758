import { expect, it } from 'vitest';
import { parseUpstream } from '../../../src/server/settings/upstream-address.ts';

it.each([
  ['http://api', { isTls: false, hostname: 'api', port: 80, socketPath: undefined }],
  ['https://api', { isTls: true, hostname: 'api', port: 443, socketPath: undefined }],
  ['http://10.0.0.5:3000', { isTls: false, hostname: '10.0.0.5', port: 3000, socketPath: undefined }],
  ['https://[::1]:8443', { isTls: true, hostname: '::1', port: 8443, socketPath: undefined }],
  ['unix:/run/api.sock', { isTls: false, hostname: 'localhost', port: 80, socketPath: '/run/api.sock' }],
])('%s → its address', (text, address) => expect(parseUpstream(text)).toEqual(address));

const longest = `unix:/${'é'.repeat(51)}`;
it('a path of a unix socket that every system takes → its address', () =>
  expect(parseUpstream(longest).socketPath).toBe(longest.slice(5)));

it.each([
  ...['', 'api:3000', 'ftp://api', 'http://api/path', 'http://u:p@api', 'http://api?q', 'http://api#f', 'unix:run'],
  // Node 20 cuts them: a client would reach the socket with the shorter path.
  ...[`${longest}x`, 'unix:/run/api.sock\0'],
])('%j → TypeError', (text) => expect(() => parseUpstream(text)).toThrow(TypeError));
