import { describe, expect, it } from 'vitest';
import { isPlainHttps } from '../../../src/core/outbound/https-address.ts';

describe('plain https', () => {
  it.each(['https://idp.example', 'https://idp.example:8443/a/b?c=d', 'https://[::1]/'])('%s → yes', (address) => {
    expect(isPlainHttps(address)).toBe(true);
  });

  it.each<[string, unknown]>([
    ['plain http', 'http://idp.example/'],
    ['a scheme in capitals', 'HTTPS://idp.example/'],
    ['no host', 'https://'],
    ['a user', 'https://user@idp.example/'],
    ['a password', 'https://:secret@idp.example/'],
    ['a fragment', 'https://idp.example/#part'],
    ['white space in front', ' https://idp.example/'],
    ['nothing', undefined],
    ['a URL object', new URL('https://idp.example/')],
  ])('%s → no', (_what, address) => {
    expect(isPlainHttps(address)).toBe(false);
  });
});
