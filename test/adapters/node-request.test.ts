import { once } from 'node:events';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { toUpgradeRequest } from '../../src/adapters/node.ts';
import { readNodeBody, readNodeBytes, readNodeRequest } from '../../src/adapters/node-request.ts';

/** A request as Node's parser leaves it. */
function receive(parts: Partial<Pick<IncomingMessage, 'method' | 'url' | 'rawHeaders'>>, socket = new Socket()) {
  return Object.assign(new IncomingMessage(socket), parts);
}

describe('headers', () => {
  const { headers } = readNodeRequest(
    receive({ rawHeaders: ['Host', 'api.example', 'Authorization', 'Bearer a', 'AUTHORIZATION', 'Bearer b', 'X-Cut'] }),
  );

  it.each([
    ['host', 'api.example'],
    ['Authorization', 'Bearer a, Bearer b'],
    ['authorization', 'Bearer a, Bearer b'],
    ['x-cut', ''],
    ['dpop', null],
  ])('%s → %j: lines of one name are joined, whatever their case', (name, value) =>
    expect(headers.get(name)).toBe(value),
  );
});

it('headers without lines, as serverless-http makes them on AWS Lambda → read, and several values are joined', () => {
  const headers = {
    host: 'api.example',
    authorization: 'Bearer a',
    dpop: ['b', 'c'],
    'content-length': 5,
    te: undefined,
  };
  const request = readNodeRequest(Object.assign(receive({ url: '/a', rawHeaders: [] }), { headers }));
  const names = ['Authorization', 'DPoP', 'Content-Length', 'TE'];
  expect(names.map((name) => request.headers.get(name))).toEqual(['Bearer a', 'b, c', '5', null]);
  expect(request.url).toBe('http://api.example/a');
});

it.each([
  [1, 0, 'http://localhost/a'],
  [1, 1, 'http:///a'],
  [2, 0, 'http:///a'],
])('no Host: HTTP/%i.%i → %s', (httpVersionMajor, httpVersionMinor, url) => {
  const incoming = Object.assign(receive({ url: '/a', rawHeaders: [] }), { httpVersionMajor, httpVersionMinor });
  expect(readNodeRequest(incoming).url).toBe(url);
});

describe('HTTP/2', () => {
  const http2 = (rawHeaders: string[]) =>
    readNodeRequest(Object.assign(receive({ url: '/a', rawHeaders }), { httpVersionMajor: 2 }));

  it.each([
    ['an authority', [':authority', 'api.example'], 'api.example'],
    ['the same Host beside it', [':authority', 'API.example', 'host', 'api.EXAMPLE'], 'API.example'],
    [
      'a different Host in addition: no host',
      [':authority', 'api.example', 'host', 'evil.example'],
      'api.example, evil.example',
    ],
    ['only a Host, as a proxy may send it', ['host', 'api.example'], 'api.example'],
    ['neither', [], null],
  ])('%s', (_name, rawHeaders, host) => {
    expect(http2(rawHeaders).headers.get('Host')).toBe(host);
    expect(http2(rawHeaders).url).toBe(`http://${host ?? ''}/a`);
  });
});

describe('method and URL', () => {
  const rawHeaders = ['Host', 'api.example:8443'];
  const secure = () => Object.assign(new Socket(), { encrypted: true });

  it.each([
    ['a path', receive({ url: '/a?b', rawHeaders }), 'http://api.example:8443/a?b'],
    ['a path, over TLS', receive({ url: '/a', rawHeaders }, secure()), 'https://api.example:8443/a'],
    ['a URL in full', receive({ url: 'https://other.example/a', rawHeaders }), 'https://other.example/a'],
    ['what is neither', receive({ url: '*', rawHeaders }), '*'],
  ])('%s', (_case, incoming, url) => expect(readNodeRequest(incoming).url).toBe(url));

  it('entries of headers → each line, with its name as sent', () => {
    const { headers } = readNodeRequest(receive({ rawHeaders: ['Host', 'a', 'X-A', '1', 'x-a', '2'] }));
    expect([...('entries' in headers ? (headers.entries as () => Iterable<unknown>)() : [])]).toEqual([
      ['Host', 'a'],
      ['X-A', '1'],
      ['x-a', '2'],
    ]);
  });

  it('no members, as on the response to a client → the root, and no method', () => {
    const incoming = receive({ rawHeaders });
    Reflect.deleteProperty(incoming, 'url');
    Reflect.deleteProperty(incoming, 'method');
    expect(readNodeRequest(incoming)).toMatchObject({ url: 'http://api.example:8443/', method: '' });
  });

  it('the target of a framework → replaces url', () =>
    expect(readNodeRequest(receive({ url: '/a', rawHeaders }), '/v1/a').url).toBe('http://api.example:8443/v1/a'));
});

describe('a body', () => {
  const text = (incoming: IncomingMessage, most: number) => readNodeBody(incoming, most);

  it('in chunks of one byte → all of them, in order', async () => {
    const incoming = receive({});
    const sent = Array.from({ length: 200 }, (_, index) => String.fromCharCode(0x30 + (index % 75))).join('');
    for (const each of sent) incoming.push(each);
    incoming.push(null);
    expect(await text(incoming, 200)).toBe(sent);
  });

  it.each([
    [4, 'body'],
    [3, 413],
  ])('4 bytes with a limit of %i → %s', async (most, expected) => {
    const incoming = receive({});
    incoming.push('body');
    incoming.push(null);
    expect(await text(incoming, most)).toBe(expected);
  });

  it('that was read before → empty', async () => {
    const incoming = receive({});
    incoming.push(null);
    incoming.resume();
    await once(incoming, 'end');
    expect(await text(incoming, 1)).toBe('');
  });

  it('of a client that disconnects before or while it is read → rejected', async () => {
    const gone = receive({});
    gone.destroy();
    await expect(readNodeBytes(gone, 1)).rejects.toThrow('disconnected');
    const leaving = receive({});
    const read = readNodeBytes(leaving, 10);
    leaving.push('a');
    leaving.destroy();
    await expect(read).rejects.toThrow('disconnected');
  });

  it('that a signal ends → rejected with its reason, and the rest can be read by another reader', async () => {
    const incoming = receive({});
    const controller = new AbortController();
    const read = readNodeBytes(incoming, 10, controller.signal);
    controller.abort(new Error('late'));
    await expect(read).rejects.toThrow('late');
    incoming.push('rest');
    incoming.push(null);
    expect(await text(incoming, 10)).toBe('rest');
  });
});

it.each([
  ['chat, bearer, abc', [], 'Bearer abc'],
  ['bearer,abc,chat', [], 'Bearer abc'],
  ['chat', [], null],
  ['chat', ['Authorization', 'DPoP abc'], 'DPoP abc'],
  ['chat, bearer', [], 'Bearer '],
  ['bearer, abc, bearer, def', [], 'Bearer abc, Bearer def'],
  ['bearer, abc', ['Authorization', 'Bearer def'], 'Bearer def, Bearer abc'],
])('subprotocols %s and headers %j → Authorization %j', (protocols, headers, authorization) => {
  const request = toUpgradeRequest(
    receive({
      ...{ method: 'GET', url: '/chat' },
      rawHeaders: ['Host', 'api.test', 'Sec-WebSocket-Protocol', protocols, ...headers],
    }),
  );
  expect(request.headers.get('Authorization')).toBe(authorization);
  expect(request.headers.get('sec-websocket-protocol')).toBe(protocols);
  expect([request.method, request.url]).toEqual(['GET', 'http://api.test/chat']);
});

it('no subprotocol → the request unchanged', () => {
  const request = toUpgradeRequest(receive({ rawHeaders: ['Host', 'api.test', 'Authorization', 'Bearer a'] }));
  expect(request.headers.get('authorization')).toBe('Bearer a');
});
