import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { flood, open, soon, stage, usePieces } from './proxied.ts';

const { proxied, receive } = await usePieces({ credentials: 'forward' });

const requests = {
  'the pool': 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
  'the pool, POST': 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n',
  'the pool, HEAD': 'HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
  'the pool, Expect without a body': 'GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n',
  'the pool, HTTP/1.0': 'GET / HTTP/1.0\r\nHost: a\r\n\r\n',
  'the agent': 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello',
  'the own connection': 'GET / HTTP/1.1\r\nHost: a\r\nAuthorization: NTLM abc\r\nConnection: close\r\n\r\n',
};
const final = 'HTTP/1.1 200 OK\r\nContent-Length: 41\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 X\r\n';
const hints =
  'HTTP/1.1 103 Early Hints\r\nLink: </a\xe9>; rel="a b"; x=\xff, <b>\r\nContent-Security-Policy: \xe9\r\n\r\n';
const hundred = 'HTTP/1.1 100 Continue\r\nX-Note: 100\r\n\r\n';

describe.each(Object.entries(requests))('%s', (client, request) => {
  it.each<[string, string, number]>([
    ['nothing', '', 0],
    ['100', hundred, 0],
    ['100 without a phrase', 'HTTP/1.1 100\r\n\r\n', 0],
    ['100 twice', hundred + hundred, 0],
    ['102', 'HTTP/1.1 102 Processing\r\n\r\n', 0],
    ['104 with a length', 'HTTP/1.1 104 Upload\r\nContent-Length: 7\r\n\r\n', 0],
    ['199 with chunks', 'HTTP/1.1 199 x\r\nTransfer-Encoding: chunked\r\n\r\n', 0],
    ['103', hints, 1],
    ['103, 100, 103, 102', `${hints}${hundred}${hints}HTTP/1.1 102 x\r\n\r\n`, 2],
  ])('%s before the response → only 103, with its bytes', async (_name, interim, count) => {
    const forms = [[interim + final], [interim, final], [...(interim + final)]];
    for (const pieces of forms) {
      const received = await receive(request, pieces);
      expect(proxied.refused).toEqual([]);
      const expected = client.includes('1.0') ? '' : hints.repeat(count);
      expect(received.slice(0, expected.length)).toBe(expected);
      const rest = received.slice(expected.length);
      expect(rest).toMatch(/^HTTP\/1\.1 200 OK\r\nContent-Length: 41\r\n/);
      const body = client.includes('HEAD') ? '' : final.slice(final.indexOf('\r\n\r\n') + 4);
      expect(rest.slice(rest.indexOf('\r\n\r\n') + 4)).toBe(body);
    }
  });

  it.each([
    ['101', 'HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n'],
    ['100 of HTTP/1.0', 'HTTP/1.0 100 Continue\r\n\r\n'],
    ['103 that closes', 'HTTP/1.1 103 x\r\nConnection: close\r\n\r\n'],
  ])('%s before the response → 502', async (_name, interim) => {
    const received = await receive(request, [interim + final]);
    expect(received).toMatch(/^(?:HTTP\/1\.1 103 .*\r\n\r\n)?HTTP\/1\.1 502 /);
    expect(proxied.refused.splice(0)).toEqual(['upstream_unavailable']);
  });

  it('103 with a length → without it', async () => {
    const received = await receive(request, [`HTTP/1.1 103 x\r\nContent-Length: 9\r\nLink: <a>\r\n\r\n${final}`]);
    const isOld = client.includes('1.0');
    expect(received.startsWith('HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 ')).toBe(!isOld);
  });
});

it.each(['the pool', 'the agent'] as const)(
  '%s: 103 without end to a client that does not read → only 64 KiB wait for it',
  async (name) => {
    let readSent = (): number => 0;
    const unsent: number[] = [];
    const respond = (socket: Socket): void => {
      readSent = flood(socket, hints.repeat(1000), 20_000_000);
    };
    const { proxied } = await stage(respond, {
      before({ socket }) {
        // As if the buffers of the kernel were full. The listener wraps the connection.
        (socket as Socket & { readonly socket: Socket }).socket.cork();
        const note = setInterval(() => unsent.push(socket.writableLength), 1);
        socket.once('close', () => clearInterval(note));
        return false;
      },
    });
    const socket = open(proxied.port, requests[name]);
    await soon(() => expect(readSent()).toBeGreaterThan(10_000_000));
    socket.destroy();
    expect(Math.max(...unsent)).toBeGreaterThanOrEqual(65_536);
    expect(Math.max(...unsent)).toBeLessThan(65_536 + hints.length);
  },
);
