import { expect, it } from 'vitest';
import { createReadClientAddress, type Trust } from '../../../src/core/http/external-url.ts';
import { cells } from '../../support/words.ts';

function read(trust: Trust, peer: string | undefined, forwarded: string | null): string | undefined {
  const headers = { get: (name: string) => (name === 'x-forwarded-for' ? forwarded : null) };
  const connection = peer === undefined ? {} : { remoteAddress: peer };
  return createReadClientAddress(trust)({ method: 'GET', url: 'http://a/', headers }, connection);
}

it.each<readonly [string, Trust, string | undefined, string | null, string | undefined]>([
  ['nobody is trusted → the peer', 'none', '192.0.2.1', '198.51.100.9', '192.0.2.1'],
  ['the peer is not trusted → the peer', ['10.0.0.0/8'], '192.0.2.1', '198.51.100.9', '192.0.2.1'],
  ['the peer is trusted → what it saw', ['10.0.0.0/8'], '10.0.0.1', '198.51.100.9', '198.51.100.9'],
  ['forged in front → what the proxy saw', ['10.0.0.0/8'], '10.0.0.1', '1.1.1.1, 198.51.100.9', '198.51.100.9'],
  ['two proxies → behind both', ['10.0.0.0/8'], '10.0.0.1', '1.1.1.1, 198.51.100.9, 10.0.0.2', '198.51.100.9'],
  ['a long list forged in front', ['10.0.0.0/8'], '10.0.0.1', `${'1.1.1.1,'.repeat(200)}198.51.100.9`, '198.51.100.9'],
  ['an empty hop ends the walk', ['10.0.0.0/8'], '10.0.0.1', '1.1.1.1,,10.0.0.2', '10.0.0.2'],
  ['an empty header → the proxy', ['10.0.0.0/8'], '10.0.0.1', '', '10.0.0.1'],
  ['a comma in front → the first', 'all', '10.0.0.1', ',1.1.1.1', '1.1.1.1'],
  [
    'more hops than are looked at → the farthest',
    'all',
    '10.0.0.1',
    `1.1.1.1,${'10.0.0.2,'.repeat(31)}10.0.0.3`,
    '10.0.0.2',
  ],
  ['everybody is trusted → the first', 'all', '10.0.0.1', '1.1.1.1, 198.51.100.9', '1.1.1.1'],
  ['no header → the proxy', ['10.0.0.0/8'], '10.0.0.1', null, '10.0.0.1'],
  ['no address → the proxy', ['10.0.0.0/8'], '10.0.0.1', 'unknown"', '10.0.0.1'],
  ['IPv6', ['::1'], '::1', '2001:db8::7', '2001:db8::7'],
  ['with a port', ['10.0.0.1'], '10.0.0.1', '203.0.113.9:51234', '203.0.113.9'],
  ['IPv6 with a port', ['::1'], '::1', '[2001:db8::7]:443', '2001:db8::7'],
  ['brackets without a port', ['::1'], '::1', '[2001:db8::7]', '2001:db8::7'],
  ['trusted, with a port → behind it', ['10.0.0.0/8'], '10.0.0.1', '198.51.100.9:1, 10.0.0.2:65535', '198.51.100.9'],
  ['IPv6 without brackets → no port', ['::1'], '::1', '2001:db8::7:443', '2001:db8::7:443'],
  ...cells(`
      203.0.113.9:65536 | 203.0.113.9: | 203.0.113.9:a | 203.0.113.9:1:2 | [203.0.113.9]:1 | [2001:db8::7
      2001:db8::7]:1 | a:1 | 203.0.113:1 | 0xcb007109:1 | 203.0.113.9. :1
    `).map((text) => [`${text} → not an address: the walk ends`, ['::1'], '::1', text, '::1'] as const),
  ['no peer, as with a unix socket', 'none', undefined, '198.51.100.9', undefined],
])('address of the client: %s', (_, trust, peer, forwarded, expected) =>
  expect(read(trust, peer, forwarded)).toBe(expected),
);
