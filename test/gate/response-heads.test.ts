import { describe, expect, it } from 'vitest';
import { usePieces } from './proxied.ts';

const { proxied, receive: receiveBytes } = await usePieces({ timeout: 2 });

const requests = {
  'the pool': 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
  'the agent': 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello',
  'the pool, for HTTP/1.0': 'GET / HTTP/1.0\r\nHost: a\r\n\r\n',
  'the pool, HEAD': 'HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
};

async function receive(request: string, pieces: readonly string[]) {
  const bytes = await receiveBytes(request, pieces);
  const end = bytes.indexOf('\r\n\r\n');
  const [line = '', ...lines] = bytes.slice(0, end).split('\r\n');
  return { status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1]), lines, body: bytes.slice(end + 4) };
}

/** Lines for this hop, and those that the gate or Node adds. */
const ownLines = /^(?:connection|keep-alive|transfer-encoding|date|trailer|proxy-connection|te|upgrade)$/i;
const nameOf = (line: string): string => line.slice(0, line.indexOf(':'));
/** The end-to-end lines, by name: the order of different names has no meaning. */
const sort = (lines: readonly string[]): string[] =>
  lines.filter((line) => !ownLines.test(nameOf(line))).toSorted((a, b) => nameOf(a).localeCompare(nameOf(b)));

const highBytes = Array.from({ length: 0x80 }, (_, i) => String.fromCharCode(0x80 + i));
/** Each byte from 0x80 at the start, in the middle and at the end of a value, and the samples of the reports. */
const values = [
  ...highBytes.map((byte) => `${byte}a${byte}b${byte}`),
  ...['10€.txt', 'café', '日本'].map((name) => `attachment; filename="${Buffer.from(name).toString('latin1')}"`),
  ...['', 'a\tb', '100-continue', 'close', '5', 'chunked'],
];
/** Every name that Node, undici or the gate treats in its own way, and names near them: those of one row in one head. */
const names = [
  ['Content-Disposition', 'content-disposition', 'Content-Type', 'Content-Language', 'Set-Cookie', 'Location'],
  ['Date', 'Expect', 'Server', 'Link', 'Vary', 'ETag', 'Last-Modified', 'Expires', 'Age', 'Retry-After', 'Host'],
  ['WWW-Authenticate', 'Cookie', 'Authorization', 'Content-Encoding', 'Content-Location', 'Accept-Ranges', 'X'],
  ['Connection', 'Keep-Alive', 'Trailer', 'Proxy-Connection', 'TE', 'Upgrade', 'Cache-Control', 'X-Request-Id'],
];

describe.each(Object.entries(requests))('%s', (_client, request) => {
  const ownBody = (body: string): string => (request.startsWith('HEAD') ? '' : body);
  describe.each(names)('%s and others', (...row) => {
    const lines = row.flatMap((name) => values.map((value) => `${name}: ${value}`));
    it.each<[string, (lines: readonly string[]) => readonly string[]]>([
      ['before a Content-Length', (all) => [`${all.join('\r\n')}\r\nContent-Length: 2\r\n\r\n`, 'ok']],
      ['after a Content-Length', (all) => [`Content-Length: 2\r\n${all.join('\r\n')}\r\n\r\n`, 'ok']],
      ['in one piece with the body', (all) => [`Content-Length: 2\r\n${all.join('\r\n')}\r\n\r\nok`]],
      ['body in pieces', (all) => [`Content-Length: 2\r\n${all.join('\r\n')}\r\n\r\n`, 'o', 'k']],
      ['body that ends with the connection', (all) => [`${all.join('\r\n')}\r\n\r\n`, 'ok']],
    ])('%s → the same bytes', async (_case, write) => {
      const [first = '', ...rest] = write(lines);
      const received = await receive(request, [`HTTP/1.1 200 OK\r\n${first}`, ...rest]);
      expect(received.status).toBe(200);
      const sent = first.slice(0, first.indexOf('\r\n\r\n')).split('\r\n');
      const isFramed = request.includes('HTTP/1.0') || /^content-length/im.test(first);
      expect(sort(received.lines)).toEqual(sort(sent));
      expect(received.body).toBe(ownBody(isFramed ? 'ok' : '2\r\nok\r\n0\r\n\r\n'));
    });
  });
});

describe.each(Object.entries(requests))('%s: a head', (client, request) => {
  const isHead = client === 'the pool, HEAD';
  const isOld = client === 'the pool, for HTTP/1.0';

  it.each<[string, readonly string[], number, string]>([
    ['204 with a Content-Length', ['HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n'], 204, ''],
    ['204 with a Content-Length over 0', ['HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n'], 204, ''],
    ['304 with a Content-Length', ['HTTP/1.1 304 Not Modified\r\nContent-Length: 1234\r\n\r\n'], 304, ''],
    ['304 with chunks', ['HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n'], 304, ''],
    ['204 with chunks', ['HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n'], 204, ''],
    ['205 without a body', ['HTTP/1.1 205 Reset\r\nContent-Length: 0\r\n\r\n'], 205, ''],
    ['200 without a body', ['HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'], 200, ''],
    ['a length of HEAD', ['HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n', isHead ? '' : 'body'], 200, 'body'],
    ['a length with zeros', ['HTTP/1.1 200 OK\r\nContent-Length: 0004\r\n\r\n', isHead ? '' : 'body'], 200, 'body'],
    ['no reason phrase', ['HTTP/1.1 200\r\nContent-Length: 4\r\n\r\nbody'], 200, 'body'],
    ['an empty reason phrase', ['HTTP/1.1 200 \r\nContent-Length: 4\r\n\r\nbody'], 200, 'body'],
    ['a reason of high bytes', [`HTTP/1.1 404 ${highBytes.join('')}\r\nContent-Length: 4\r\n\r\nbody`], 404, 'body'],
    ['a status without a phrase', ['HTTP/1.1 299 x\r\nContent-Length: 4\r\n\r\nbody'], 299, 'body'],
    ['the last status', ['HTTP/1.1 999 x\r\nContent-Length: 4\r\n\r\nbody'], 999, 'body'],
    ['of HTTP/1.0', ['HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nbody'], 200, 'body'],
  ])('%s → the same status, length and body', async (_name, pieces, status, body) => {
    const received = await receive(request, pieces);
    expect(received.status).toBe(status);
    expect(proxied.refused.splice(0)).toEqual([]);
    expect(proxied.cut.splice(0)).toEqual([]);
    const length = /content-length: \d+/i.exec(pieces.join(''));
    expect(sort(received.lines)).toEqual(length === null ? [] : [length[0]]);
    expect(received.body).toBe(isHead ? '' : body);
  });

  it('names and values of trailers with high bytes → the same bytes where trailers can follow', async () => {
    const lines = values.filter((value) => value !== '').map((value) => `X-Sum: ${value}`);
    const head = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: ${highBytes.join('')}\r\n\r\n`;
    const trailer = `0\r\n${lines.join('\r\n')}\r\n\r\n`;
    const received = await receive(request, [head, '2\r\nok\r\n', trailer]);
    expect(received.status).toBe(200);
    const mayTrail = !isOld && !isHead;
    const announced = received.lines.filter((line) => /^trailer/i.test(line));
    expect(announced).toEqual(mayTrail ? [`Trailer: ${highBytes.join('')}`] : []);
    expect(received.body).toBe(mayTrail ? `2\r\nok\r\n${trailer}` : isHead ? '' : 'ok');
  });

  it.each<[string, string]>([
    ['status 000', 'HTTP/1.1 000 x\r\nContent-Length: 4\r\n\r\nbody'],
    ['status 099', 'HTTP/1.1 099 x\r\nContent-Length: 4\r\n\r\nbody'],
    ['status 1000', 'HTTP/1.1 1000 x\r\nContent-Length: 4\r\n\r\nbody'],
    ['status 101', 'HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n'],
    ['NUL in a value', 'HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 4\r\n\r\nbody'],
    ['CR in a value', 'HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b\r\nContent-Length: 4\r\n\r\nbody'],
    ['LF in a value', 'HTTP/1.1 200 OK\r\nX: a\nSet-Cookie: b\r\nContent-Length: 4\r\n\r\nbody'],
    ['0x7f in a value', 'HTTP/1.1 200 OK\r\nX: a\x7fb\r\nContent-Length: 4\r\n\r\nbody'],
    ['a folded line', 'HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 4\r\n\r\nbody'],
    ['a space before the colon', 'HTTP/1.1 200 OK\r\nX : a\r\nContent-Length: 4\r\n\r\nbody'],
    ['a line without a colon', 'HTTP/1.1 200 OK\r\nX\r\nContent-Length: 4\r\n\r\nbody'],
    ['an empty name', 'HTTP/1.1 200 OK\r\n: a\r\nContent-Length: 4\r\n\r\nbody'],
    ['a high byte in a name', 'HTTP/1.1 200 OK\r\nX\xe9: a\r\nContent-Length: 4\r\n\r\nbody'],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nbody'],
    ['a list of lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 4, 4\r\n\r\nbody'],
    ['a signed length', 'HTTP/1.1 200 OK\r\nContent-Length: +4\r\n\r\nbody'],
    ['both', 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n'],
    [
      'chunks and a length',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n4\r\nbody\r\n0\r\n\r\n',
    ],
    ['gzip before chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n'],
    [
      'chunks twice',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n',
    ],
    ['identity', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nbody'],
    ['another protocol', 'SSH-2.0-OpenSSH\r\n\r\n'],
    ['HTTP/0.9', 'hello\r\n\r\n'],
    ['lines that end with LF', 'HTTP/1.1 200 OK\nContent-Length: 4\n\nbody'],
    ['a byte order mark', '\xef\xbb\xbfHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody'],
    ['more than 64 KiB', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(65_536)}\r\nContent-Length: 4\r\n\r\nbody`],
  ])('%s → 502 upstream_unavailable', async (_name, bytes) => {
    const received = await receive(request, [bytes]);
    expect([received.status, proxied.refused.splice(0), proxied.cut.splice(0)]).toEqual([
      502,
      ['upstream_unavailable'],
      [],
    ]);
    expect(received.lines.join()).not.toMatch(/cookie|X:/i);
  });
});
