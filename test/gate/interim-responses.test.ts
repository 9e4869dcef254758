import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { sendRaw, stage } from './proxied.ts';

/** A proxy before an upstream that sends these pieces after each request, each in its own event-loop iteration. */
async function stagePieces(pieces: readonly string[]) {
  const { proxied } = await stage(
    async (socket, arrived) => {
      if (!arrived.endsWith('\r\n\r\n') && !arrived.endsWith('hello')) return;
      for (const [i, piece] of pieces.entries()) {
        if (i > 0) await sleep(1);
        socket.write(Buffer.from(piece, 'latin1'));
      }
    },
    { credentials: 'forward' },
  );
  return proxied;
}

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
      const proxied = await stagePieces(pieces);
      const received = await sendRaw(proxied.port, request);
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
    const proxied = await stagePieces([interim + final]);
    expect(await sendRaw(proxied.port, request)).toMatch(/^(?:HTTP\/1\.1 103 .*\r\n\r\n)?HTTP\/1\.1 502 /);
    expect(proxied.refused).toEqual(['upstream_unavailable']);
  });

  it('103 with a length → without it', async () => {
    const proxied = await stagePieces([`HTTP/1.1 103 x\r\nContent-Length: 9\r\nLink: <a>\r\n\r\n${final}`]);
    const received = await sendRaw(proxied.port, request);
    const isOld = client.includes('1.0');
    expect(received.startsWith('HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 ')).toBe(!isOld);
  });
});

describe.each(['the pool', 'the agent'] as const)('%s: 103 without end', (name) => {
  it('to a client that does not read → bounded', async () => {
    const flood = Buffer.from(hints.repeat(1000), 'latin1');
    let sent = 0;
    const unsent: number[] = [];
    const { proxied } = await stage(
      (socket) => {
        const send = (): void => {
          while (!socket.destroyed && sent < 400_000_000 && socket.write(flood)) sent += flood.length;
        };
        socket.on('drain', send);
        send();
      },
      {
        before(incoming) {
          unsent.push(0);
          const note = setInterval(() => unsent.push(incoming.socket.writableLength), 5);
          incoming.socket.once('close', () => clearInterval(note));
          return false;
        },
      },
    );
    const socket = connect(proxied.port, '127.0.0.1').pause();
    await once(socket, 'connect');
    socket.write(requests[name]);
    // On a busy host most are dropped before the kernel's buffers are full.
    await vi.waitFor(() => expect([sent > 39_000_000, Math.max(...unsent) > 0]).toEqual([true, true]), 20_000);
    socket.destroy();
    expect(Math.max(...unsent)).toBeLessThan(65_536 + hints.length);
  });
});
