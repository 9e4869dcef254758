import { expect, it } from 'vitest';
import { readProxyAddress } from '../../../src/core/outbound/https-address.ts';

it.each([
  ['proxy.example:3128', 'http://proxy.example:3128'],
  ['http://proxy.example', 'http://proxy.example'],
  ['https://user:p%40ss@proxy.example:8443', 'https://user:p%40ss@proxy.example:8443'],
  ['socks5://proxy.example', undefined],
  ['http://', undefined],
  ['http://user:p%ss@proxy.example', undefined],
])('%s → %s', (text, address) => {
  expect(readProxyAddress(text)).toBe(address);
});
