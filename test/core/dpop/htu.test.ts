import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { explainMismatch, normaliseUrl, showUrl } from '../../../src/core/dpop/htu.ts';
import { words } from '../../support/words.ts';

const plain = 'https://api.example.com/things';

it.each([
  ['nothing to change', plain, plain],
  ['a query', `${plain}?a=b&c`, plain],
  ['a fragment', `${plain}#part`, plain],
  ['scheme in capitals', 'HTTPS://api.example.com/things', plain],
  ['host in capitals', 'https://API.Example.COM/things', plain],
  ['the default port of https', 'https://api.example.com:443/things', plain],
  ['the default port of http', 'http://api.example.com:80/things', 'http://api.example.com/things'],
  ['an empty port', 'https://api.example.com:/things', plain],
  ['a port with zeros before it', 'https://api.example.com:00443/things', plain],
  ['port 0, which is no default', 'https://a:0/', 'https://a:0/'],
  ['the highest port', 'https://a:65535/', 'https://a:65535/'],
  ['the port of the other scheme', 'https://a:80/', 'https://a:80/'],
  ['an empty path', 'https://api.example.com', 'https://api.example.com/'],
  ['an empty path before a query', 'https://a?b', 'https://a/'],
  ['a segment of one dot', 'https://a/b/./c', 'https://a/b/c'],
  ['a segment of two dots', 'https://a/b/../c', 'https://a/c'],
  ['more dots than segments', 'https://a/b/../../../c', 'https://a/c'],
  ['two dots at the end', 'https://a/b/c/..', 'https://a/b/'],
  ['dots alone', 'https://a/..', 'https://a/'],
  ['encoded dots', 'https://a/b/%2E%2e/c', 'https://a/c'],
  ['a name of three dots', 'https://a/.../b', 'https://a/.../b'],
  ['a name that starts with a dot', 'https://a/.well-known/b', 'https://a/.well-known/b'],
  ['two dots after an empty segment', 'https://a/b//../c', 'https://a/b/c'],
  ['empty segments', 'https://a//b///c', 'https://a//b///c'],
  ['a slash at the end', 'https://a/b/', 'https://a/b/'],
  ['an encoded letter', 'https://a/%74hings', 'https://a/things'],
  ['encoded unreserved characters', 'https://a/%2D%2e%5F%7e%41', 'https://a/-._~A'],
  ['small letters in an escape', 'https://a/b%c3%a9%2f', 'https://a/b%C3%A9%2F'],
  ['an encoded percent sign', 'https://a/%252e%252E', 'https://a/%252e%252E'],
  ['an encoded null character', 'https://a/%00', 'https://a/%00'],
  ['a pipe, which browsers leave raw', 'https://a/b|c', 'https://a/b%7Cc'],
  ['brackets and quotes', `https://a/["'<>^\`{}]`, "https://a/%5B%22'%3C%3E%5E%60%7B%7D%5D"],
  ['sub-delims', "https://a/!$&'()*+,;=:@", "https://a/!$&'()*+,;=:@"],
  ['an IPv4 address', 'http://127.0.0.1:8000/', 'http://127.0.0.1:8000/'],
  ['an IPv6 address', 'https://[2001:DB8::1]:443/a', 'https://[2001:db8::1]/a'],
  ['an address that only browsers know', 'http://0x7f.1/', 'http://0x7f.1/'],
  ['an underscore and a dot at the end of the host', 'https://my_api.local./', 'https://my_api.local./'],
  ['an internationalised host', 'https://xn--bcher-kva.example/', 'https://xn--bcher-kva.example/'],
])('URLs that mean the same: %s → its normal form', (_name, text, expected) =>
  expect(normaliseUrl(text)).toBe(expected),
);

it.each([
  ...words(`
    /things //api.example.com/things ftp://a/b httpsx://a/b view-source:https://a/b https:/a/b https:///b
    https://:443/b https://user@a/b https://user:password@a/b https://@a/b https://a/é https://bücher.example/
    https://a。b/ https://a/b% https://a/%2 https://a/%zz https://a/?%zz https://%61/b https://a:b/ https://a:65536/
    https://a:000443/ https://a:-1/ https://[a.example]/ https://[fe80::1%25eth0]/ https://[::1/
  `),
  ...['', 'https:\\\\a\\b', 'https://a\\@b/c', ' https://a/b'],
  ...['\\c', ' ', ' c', '\tc', '\nc', '\n', '\0', '\x7f'].map((end) => `https://a/b${end}`),
])('URLs that are refused: %j → undefined', (text) => expect(normaliseUrl(text)).toBeUndefined());

describe('properties', () => {
  const texts = fc.oneof(
    fc.webUrl({ withQueryParameters: true, withFragments: true, validSchemes: ['http', 'https', 'HTTPS'] }),
    fc
      .array(fc.constantFrom('/', '.', '..', '%2e', '%2E', '%25', '%', 'a', 'A', '%41', '?', '#', '|', ':', '@', ';'))
      .map((parts) => `https://a/${parts.join('')}`),
    fc.string().map((text) => `http://a:80/${text}`),
  );

  it('the normal form of a normal form is itself, in printable ASCII without query and fragment', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const once = normaliseUrl(text);
        if (once === undefined) return;
        expect(normaliseUrl(once)).toBe(once);
        expect(once).toMatch(/^https?:\/\/[!-~]+$/);
        expect(once).not.toMatch(/[?#"<>\\]|\/\.\.?(?:\/|$)/);
      }),
      { numRuns: 2_000 },
    );
  });

  it('a very long string → checked in time linear in its length', () => {
    expect(normaliseUrl(`https://a/${'../../'.repeat(100_000)}b`)).toBe('https://a/b');
    expect(normaliseUrl(`https://${'a.'.repeat(100_000)}`)).toBeDefined();
    expect(normaliseUrl(`https://a${':'.repeat(100_000)}`)).toBeUndefined();
  });
});

describe('fix of a mismatch', () => {
  it.each([
    ['the scheme', 'http://a/b', 'https://a/b', 'trustProxy with X-Forwarded-Proto'],
    ['the host', 'https://inner/b', 'https://a/b', 'trustProxy with X-Forwarded-Host'],
    ['the port', 'https://a:8000/b', 'https://a/b', 'trustProxy with X-Forwarded-Host'],
    ['a prefix that was cut off', 'https://a/b', 'https://a/v1/b', 'trustProxy with X-Forwarded-Prefix'],
    ['a prefix that was added', 'https://a/v1/b', 'https://a/b', 'trustProxy with X-Forwarded-Prefix'],
    [
      'everything a proxy can change',
      'http://inner:8000/b',
      'https://a/v1/b',
      'trustProxy with X-Forwarded-Proto, X-Forwarded-Host, X-Forwarded-Prefix',
    ],
    ['the path', 'https://a/b', 'https://a/c', 'path'],
    ['a slash at the end', 'https://a/b', 'https://a/b/', 'path'],
    ['the path and the scheme', 'http://a/b', 'https://a/c', 'path'],
    ['no URL in the proof', 'https://a/b', undefined, 'htu'],
    ['no URL of the request', undefined, 'https://a/b', 'path'],
    ['no URL at all', undefined, undefined, 'htu'],
  ])('%s', (_name, expected, received, hint) => expect(explainMismatch(expected, received)).toBe(hint));

  it.each([
    ['the scheme', 'http://a/b', 'https://a/b', 'externalUrl is http://a'],
    ['a prefix', 'http://a/b', 'http://a/v1/b', 'externalUrl is http://a'],
    ['the path', 'http://a/b', 'http://a/c', 'path'],
    ['no URL in the proof', 'http://a/b', undefined, 'htu'],
  ])('%s, while the URL is pinned → the pinned URL, because proxies are ignored', (_name, expected, received, hint) =>
    expect(explainMismatch(expected, received, 'http://a')).toBe(hint),
  );
});

it.each([
  ['a short one', 'https://a/', 'https://a/'],
  ['one of 512 characters', `https://a/${'b'.repeat(502)}`, `https://a/${'b'.repeat(502)}`],
  ['one of 513 characters', `https://a/${'b'.repeat(503)}`, '(too long)'],
  ['none', undefined, '(not a URL)'],
])('a URL for the log: %s', (_name, url, shown) => expect(showUrl(url)).toBe(shown));
