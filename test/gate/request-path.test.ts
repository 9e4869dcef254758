import { describe, expect, it } from 'vitest';
import { Refused } from '../../src/core/refused.ts';
import { createGateCors } from '../../src/gate/match/cors.ts';
import {
  describeTarget,
  type OfferedToken,
  readHandshakeToken,
  readOfferedToken,
  readOriginHost,
  readRequestPath,
  slashMark,
} from '../../src/gate/match/request-target.ts';
import { findPlaceholders, matchHost } from '../../src/gate/match/rule-pattern.ts';

describe('paths that another reader may understand differently are not read', () => {
  it.each([
    ...['orders', '', 'https://api.example/orders', '*', '/a/./b', '/a/../b', '/a/..', '/a/.', '/a/%2e%2e/b'],
    ...['/a/b%2Ejson', '/a/.%2e/b', '//orders', '/a//b', '/a//', '/a;x=1/b', '/a%3Bx', '/a\\b', '/a%5Cb'],
    ...['/a/..%5cb', '/a#b', '/a#b?c', '/a%23b', '/a%3fb', '/a%00', '/a%0Ab', '/a%7f', '/a%C2%85', '/a%'],
    ...['/a%2', '/a%zz', '/a%252Fb', '/%2561dmin', '/a%25%32%46b', '/a%C0%AF', '/a%E2%82', '/a%ED%A0%80'],
    ...['/a b', '/a\tb', '/caf\u00e9', '/a/..%2Fb', '/a%2F..%2fb', '/a%2F.'],
  ])('%j', (target) => {
    expect(readRequestPath(target)).toBeUndefined();
  });
});

describe('paths that have one meaning are read into segments', () => {
  it.each<[string, string, string[]]>([
    ['root', '/', []],
    ['root with a query', '/?a=/../b', []],
    ['one slash at the end', '/a/b/', ['a', 'b']],
    ['query with anything', '/a?b=//..;%zz\\#', ['a']],
    ['names with dots', '/a/.well-known/x.y/...', ['a', '.well-known', 'x.y', '...']],
    ['case is kept', '/Orders', ['Orders']],
    ['unreserved escapes are decoded once', '/%6Frders/%7ea', ['orders', '~a']],
    ['an escaped at sign is an at sign', '/%40me/@me', ['@me', '@me']],
    ['UTF-8', '/caf%C3%A9', ['caf\u00e9']],
    ['a percent sign of its own', '/100%25', ['100%']],
    ['a plus is a plus', '/a+b', ['a+b']],
  ])('%s: %j', (_claim, target, segments) => {
    expect(readRequestPath(target)).toEqual({ segments, hasEncodedSlash: false });
  });

  it('an encoded slash → no separator, and reported', () => {
    expect(readRequestPath('/@scope%2Fname/1')).toEqual({
      segments: [`@scope${slashMark}name`, '1'],
      hasEncodedSlash: true,
    });
  });
});

/** A request whose headers have exactly these values; the class Headers would trim them. */
const requestWith = (headers: Readonly<Record<string, string>>, more: object = {}) => ({
  ...{ method: 'GET', url: 'https://api.example/a?b#c', ...more },
  headers: { get: (name: string) => headers[name.toLowerCase()] ?? null },
});

describe('the token of a subprotocol', () => {
  const refused = (others = ''): OfferedToken => ({ token: undefined, others });
  it.each<[offered: string, OfferedToken | undefined]>([
    ['chat', undefined],
    ['bearer.v1, bearer-x, xbearer', undefined],
    ['chat, bearer, T', { token: 'T', others: 'chat' }],
    ['bearer,T', { token: 'T', others: '' }],
    ['\t bearer \t,\t  T \t', { token: 'T', others: '' }],
    ['a, bearer, T, b', { token: 'T', others: 'a, b' }],
    ['bearer', refused()],
    ['chat, bearer', refused('chat')],
    ['T, bearer', refused('T')],
    ['bearer, ', refused()],
    ['bearer, , T', refused('T')],
    ['bearer, bearer', refused()],
    ['bearer, T, bearer, T', refused()],
    ['bearer, T, bearer, U', refused()],
    ['bearer, T, T', refused()],
    ['T, bearer, T, chat', refused('chat')],
    ['Bearer, T', refused()],
    ['BEARER, T, chat', refused('chat')],
    ['"bearer", T', refused()],
    ['bearer\xa0, T', refused()],
    ['bearer T', refused()],
    ['bearer=T', refused()],
    ['bearer, a b', refused()],
    ['bearer, a=b', refused()],
    ['bearer, =a', refused()],
  ])('%j → %j', (offered, expected) =>
    expect(readOfferedToken(requestWith({ 'sec-websocket-protocol': offered }).headers)).toEqual(expected),
  );

  const key = 'dGhlIHNhbXBsZSBub25jZQ==';
  const handshake = { upgrade: 'WebSocket', connection: 'keep-alive, Upgrade', 'sec-websocket-key': key };
  it.each<[string, object, Readonly<Record<string, string>>, boolean]>([
    ['every header', {}, {}, true],
    ['another method', { method: 'POST' }, {}, false],
    ['another protocol', {}, { upgrade: 'h2c' }, false],
    ['Connection without upgrade', {}, { connection: 'close, upgraded' }, false],
    ['more before the key', {}, { 'sec-websocket-key': `x${key}` }, false],
    ['more after the key', {}, { 'sec-websocket-key': `${key}x` }, false],
    ['no key', {}, { 'sec-websocket-key': '' }, false],
  ])('a handshake with %s → read: %4$s', (_name, more, headers, isRead) => {
    const request = requestWith({ ...handshake, 'sec-websocket-protocol': 'bearer, T', ...headers }, more);
    expect(readHandshakeToken(request)).toEqual(isRead ? { token: 'T', others: '' } : undefined);
  });

  it('no headers → not read', () => expect(readHandshakeToken(requestWith({}))).toBeUndefined());
});

describe('the target in the log', () => {
  it.each<[string, object, string]>([
    ['the path of the URL', {}, '/a'],
    ['no path', { url: 'https://api.example' }, '/'],
    ['the target as sent', { target: '/b?c\nd' }, '/b'],
    ['a fragment', { target: '/b#c' }, '/b'],
    ['a token', { target: '/reset/eyJ12345678.a-b/now' }, '/reset/***/now'],
    ['what is too short for a token', { target: '/eyJ1234567' }, '/eyJ1234567'],
    ['256 characters', { target: `/${'a'.repeat(255)}` }, `/${'a'.repeat(255)}`],
    ['257 characters', { target: `/${'a'.repeat(256)}` }, `/${'a'.repeat(254)}…`],
  ])('%s → %j', (_name, more, path) => expect(describeTarget(requestWith({}, more), undefined).path).toBe(path));

  it('the host of the external URL, or else the header', () => {
    const request = requestWith({ host: 'inner.example' });
    const external = { origin: 'https://api.example:8443', path: '/a', prefix: '' };
    expect(describeTarget(request, external).host).toBe('api.example:8443');
    for (const unknown of [undefined, new Refused('bad_host_header')]) {
      expect(describeTarget(request, unknown).host).toBe('inner.example');
      expect(describeTarget(requestWith({}), unknown).host).toBe('');
    }
  });
});

it.each([
  ['https://api.example', 'api.example', ''],
  ['https://api.example.:8443', 'api.example', ':8443'],
  ['https://[::1]', '[::1]', ''],
  ['https://[0:0::1]:8443', '[::1]', ':8443'],
  ['https://127.0.0.1:80', '127.0.0.1', ':80'],
  ['https://0x7f.1', '127.0.0.1', ''],
  ['https://2130706433', '127.0.0.1', ''],
  ['https://a.0x7g', 'a.0x7g', ''],
  ['https://a.1', 'a.1', ''],
])('host of %s → %s and %j', (origin, name, port) =>
  expect(readOriginHost(origin)).toEqual({ name, nameAndPort: name + port }),
);

it('CORS for every origin → *, and only values that a browser sends are repeated', () => {
  const cors = createGateCors({ origins: ['*'] });
  expect([cors.allows('https://a.example'), cors.allows('')]).toEqual([true, false]);
  const preflight = (method: string, length = 2048) => {
    const names = { 'access-control-request-headers': 'a'.repeat(length) };
    const request = requestWith({ origin: 'null', 'access-control-request-method': method, ...names });
    return cors.describePreflight(request).slice(4, -2);
  };
  const origin = ['access-control-allow-origin', '*'];
  const headers = ['access-control-allow-headers', 'a'.repeat(2048)];
  expect(preflight('PUT')).toEqual([...origin, 'access-control-allow-methods', 'PUT', ...headers]);
  for (const method of ['', 'A;', ';A']) expect(preflight(method)).toEqual([...origin, ...headers]);
  expect(preflight('', 2049)).toEqual(origin);
  expect(cors.describe(requestWith({}))).toEqual(['vary', 'Origin']);
});

describe('placeholders of other routers', () => {
  const curly = ['$', '{id}'].join('');
  it.each([':id', ':a1?', ':all*', ':all+', '<int:id>', '[id]', '[...all]?', '(x)', '(.*)+', '$id', curly, '.*'])(
    '%s → named, with what to write',
    (literal) => {
      const entries = [
        { id: 'a', path: '/x' },
        { id: 'b', path: `/v1/${literal}/x` },
      ];
      const seen = `"${literal}" in the rule "b" is a literal`;
      expect(findPlaceholders(entries)).toEqual([{ index: 1, seen, fix: 'Write {name} or * for any one segment.' }]);
    },
  );

  it('in a label of a host → named', () =>
    expect(findPlaceholders([{ id: 'a', path: '/x', hosts: ['b.example', '<tenant>.example'] }])).toHaveLength(1));

  it.each(['{id}', 'a:b', ':1', 'x<y>', '<>', '[a]b', 'a(b)', '$', 'a.*', ':id-'])('%s → none', (literal) =>
    expect(findPlaceholders([{ id: 'a', path: `/${literal}` }])).toEqual([]),
  );
});

it.each([
  ['{}.api.example', 'a.api.example', true],
  ['{}.api.example', 'a.b.api.example', false],
  ['{}.api.example', 'a.api.test', false],
  ['{}.api.example', 'api.example', false],
  ['api.example', 'api.example', true],
])('the host %s, called as %s → matches: %s', (pattern, name, isMatch) =>
  expect(matchHost({ pattern, names: new Map() }, name)).toEqual(isMatch ? name.split('.') : undefined),
);
