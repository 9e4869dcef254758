import { authority, badRequest, get, headers, noCredentials, path, pipelined, raw, withLine } from './http-requests.ts';
import { listCases } from './row.ts';
import type { World } from './world.ts';

const chunkedHead = (world: World): readonly string[] => [
  'GET /api/private HTTP/1.1',
  `Host: ${authority(world)}`,
  'Connection: close',
  'Transfer-Encoding: chunked',
];

const withLines = (...lines: readonly string[]) => get('/api/private', () => lines);
const withHost = (host: string) =>
  raw(() => ['GET /api/private HTTP/1.1', `Host: ${host}`, 'Connection: close', 'Authorization: Bearer x']);
const malformedBody = { early: noCredentials };

/** Attacks by the bytes of a message. */
export const httpFraming = listCases([
  {
    attack: 'request smuggling',
    source:
      'RFC 9112 §6.1, §11.2, CVE-2022-32213, CVE-2022-32214, CVE-2022-32215, CVE-2023-30589, CVE-2024-22019, CVE-2024-27982',
    ...badRequest,
    cases: [
      ['Content-Length and Transfer-Encoding', withLines('Content-Length: 4', 'Transfer-Encoding: chunked')],
      ['two Content-Length', withLines('Content-Length: 4', 'Content-Length: 5')],
      ['Content-Length a list', withLines('Content-Length: 4, 5')],
      ['Content-Length negative', withLines('Content-Length: -1')],
      ['Content-Length with a plus', withLines('Content-Length: +4')],
      ['Content-Length in hexadecimal', withLines('Content-Length: 0x4')],
      ['Transfer-Encoding of two, chunked not last', withLines('Transfer-Encoding: chunked, identity')],
      ['Transfer-Encoding unknown', withLines('Transfer-Encoding: xchunked')],
      ['Transfer-Encoding folded', withLines('Transfer-Encoding:', ' chunked', 'Content-Length: 4')],
      ['space before a colon', withLine(() => 'Content-Length : 4')],
      [
        'space in front of the first header',
        raw((world) => ['GET /api/private HTTP/1.1', ' Content-Length: 4', `Host: ${authority(world)}`]),
      ],
      ['bare CR in a header', withLine(() => 'X-A: b\rContent-Length: 4')],
      [
        'bare LF as the end of lines',
        ({ ...world }) => ({ raw: `GET /api/private HTTP/1.1\nHost: ${authority(world)}\n\n` }),
      ],
      ['NUL in a header', withLine(() => 'X-A: b\0c')],
      ['NUL in a name', withLine(() => 'X-\0A: b')],
      ['control character in the target', get('/api/private\x01')],
      ['byte over 127 in the target', get('/api/priv\xe4te')],
      ['folded header', withLine(() => 'X-A: b\r\n c')],
      ['chunk extension of 20 KiB', raw(chunkedHead, `1;${'x'.repeat(20_000)}\r\nx\r\n0\r\n\r\n`), malformedBody],
      ['invalid chunk size', raw(chunkedHead, 'zz\r\n'), malformedBody],
    ],
  },
  {
    attack: 'target or Host that readers read differently',
    source: 'RFC 9112 §3.2, RFC 9110 §7.2',
    status: 400,
    reason: 'bad_host_header',
    cases: [
      ['no Host', raw(() => ['GET /api/private HTTP/1.1', 'Connection: close'])],
      [
        'two Host',
        raw((world) => [
          'GET /api/private HTTP/1.1',
          `Host: ${authority(world)}`,
          'Host: evil.example.test',
          'Connection: close',
        ]),
      ],
      ['Host with a path', withHost('a/api/public?')],
      ['Host with user information', withHost('a@b')],
      ['Host with two dots', withHost('a..b')],
      ['Host with a percent escape', withHost('a%41')],
      ['absolute form', get('http://evil.example.test/api/private'), noCredentials],
      ['absolute form of another scheme', get('gopher://evil.example.test/api/private'), badRequest],
      ['target without a slash', get('api/private'), badRequest],
      ['target *', get('*'), badRequest],
      ['target with a fragment', get('/api/private#/api/public'), noCredentials],
      ['target with a backslash', get('\\api\\private'), badRequest],
      ['HTTP/1.0', raw(() => ['GET /api/private HTTP/1.0']), noCredentials],
      ['HTTP/0.9', () => ({ raw: 'GET /api/private\r\n\r\n' }), noCredentials],
      ['HTTP/2.0 preface', () => ({ raw: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' }), badRequest],
      ['HTTP/9.9', raw(() => ['GET /api/private HTTP/9.9', 'Host: a']), badRequest],
      ['TLS', () => ({ raw: '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n' }), badRequest],
      [
        'CONNECT',
        raw((world) => [`CONNECT ${new URL(world.decoy.url).host} HTTP/1.1`, `Host: ${authority(world)}`]),
        { status: 0, reason: null },
      ],
      [
        'upgrade to another protocol',
        withLines(
          'Connection: Upgrade',
          'Upgrade: websocket',
          'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
          'Sec-WebSocket-Version: 13',
        ),
        noCredentials,
      ],
    ],
  },
  {
    attack: 'credentials of one request for the next',
    source: 'RFC 9112 §9.3.2',
    ...noCredentials,
    cases: [
      [
        'pipelined: none, then good',
        pipelined(({ mint }) => [[], [`Authorization: Bearer ${mint()}`]]),
        { following: [200] },
      ],
      [
        'pipelined: bad, then good, then none',
        pipelined(({ mint }) => [['Authorization: Bearer x'], [`Authorization: Bearer ${mint()}`], []]),
        { reason: 'opaque_token', following: [200, 401] },
      ],
      [
        'pipelined: 200 in one go, none and good in turn',
        pipelined(({ mint }) => {
          const good = [`Authorization: Bearer ${mint()}`];
          return Array.from({ length: 200 }, (_, index) => (index % 2 === 0 ? [] : good));
        }),
        { following: Array.from({ length: 199 }, (_, index) => (index % 2 === 0 ? 200 : 401)) },
      ],
      [
        'a request inside the body of the first',
        raw((world) => {
          const inner = `GET /api/private HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${world.mint()}\r\n\r\n`;
          const lines = ['GET /api/private HTTP/1.1', `Host: ${authority(world)}`, 'Connection: close'];
          return [...lines, `Content-Length: ${inner.length}`, '', inner];
        }),
      ],
    ],
  },
  {
    attack: 'header section that is too large',
    source: 'RFC 6585 §5, CVE-2018-12121',
    status: 431,
    cases: [
      ['one header of 33 KiB', headers(() => ['X-A', 'x'.repeat(33_000)])],
      ['token of 33 KiB', headers(() => ['Authorization', `Bearer ${'x'.repeat(33_000)}`])],
      ['4000 headers', headers(() => Array.from({ length: 4000 }, (_, index) => [`X-${index}`, 'xxxx']).flat())],
      ['target of 33 KiB', path(`/api/private?${'x'.repeat(33_000)}`)],
    ],
  },
]);
