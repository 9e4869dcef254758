import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { useListeners } from '../../support/raw-listeners.ts';
import { stall } from '../../support/stall.ts';

/** More than the kernel takes for a client that does not read, if so many are owed. */
const large = 'x'.repeat(512 * 1024);
const { open: listen, dial: call } = useListeners();
const open = (
  onRequest: RequestListener,
  times: { readonly unreadTimeout?: number; readonly keepAlive?: number } = {},
) => listen({ onRequest, keepAlive: 5, ...times });

/** A connection whose answers are not read. */
async function callWithoutReading(port: number): Promise<Socket> {
  const socket = await call(port);
  socket.pause();
  return socket;
}

/** One call on a connection of its own, to the end of its answer. */
async function callOnce(port: number, target: string): Promise<void> {
  const socket = await call(port);
  socket.write(`GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  socket.resume();
  await once(socket, 'close');
}

function pipeline(count: number, from = 0): string {
  return Array.from({ length: count }, (_, i) => `GET /${i + from} HTTP/1.1\r\nHost: a\r\n\r\n`).join('');
}

/** Reads until so many answers of `<target>` have come, and gives their targets. */
async function readTargets(socket: Socket, count: number): Promise<readonly string[]> {
  let text = '';
  let ends = 0;
  socket.setEncoding('latin1');
  for await (const chunk of socket) {
    text += chunk;
    ends += chunk.split('>').length - 1;
    if (ends >= count) break;
  }
  return text.match(/<[^>]*>/g) ?? [];
}

const echo: RequestListener = (incoming, outgoing) => void outgoing.end(`<${incoming.url}>`);
const expected = (count: number) => Array.from({ length: count }, (_, i) => `</${i}>`);

/** Waits until something holds; the time limit of the test bounds it. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(5);
}

describe('requests that are pipelined', () => {
  it('2,000 requests in one go from a client that reads → 2,000 responses, in order', async () => {
    const socket = await call(await open(echo));
    socket.write(pipeline(2000));
    expect(await readTargets(socket, 2000)).toEqual(expected(2000));
  });

  it('responses that take longer than their requests → all of them, in order, one at a time', async () => {
    let owed = 0;
    let most = 0;
    const port = await open((incoming, outgoing) => {
      most = Math.max(most, ++owed);
      setTimeout(() => {
        owed--;
        outgoing.end(`<${incoming.url}>`);
      }, 1);
    });
    const socket = await call(port);
    socket.write(pipeline(500));
    expect(await readTargets(socket, 500)).toEqual(expected(500));
    expect(most).toBe(1);
  });

  it.each([1, 3, 500])(
    '%i requests from a client that then closes its half → all responses, in order',
    async (count) => {
      const port = await open((incoming, outgoing) => void setTimeout(() => outgoing.end(`<${incoming.url}>`), 1));
      const socket = await call(port);
      socket.end(pipeline(count));
      let text = '';
      for await (const chunk of socket.setEncoding('latin1')) text += chunk;
      expect(text.match(/<[^>]*>/g)).toEqual(expected(count));
    },
  );

  it('a client that closes its half in the middle of a request → 400, and the connection is closed', async () => {
    const socket = await call(await open(echo));
    socket.end(`${pipeline(2)}GET /2 HTTP/1.1\r\nHost`);
    let text = '';
    for await (const chunk of socket.setEncoding('latin1')) text += chunk;
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 400']);
  });

  it.each([
    ['in one go', async (socket: Socket) => void socket.write(pipeline(1724))],
    [
      'one by one',
      async (socket: Socket) => {
        for (let i = 0; i < 200; i++) {
          socket.write(pipeline(1));
          await setImmediate();
        }
      },
    ],
  ])('requests %s from a client that never reads → one is pending, then no more are handled', async (_how, send) => {
    let handled = 0;
    let pending = 0;
    let most = 0;
    const port = await open((incoming, outgoing) => {
      if (incoming.url !== '/other') {
        handled++;
        most = Math.max(most, ++pending);
        outgoing.once('finish', () => pending--);
      }
      outgoing.end(large);
    });
    const socket = await callWithoutReading(port);
    await send(socket);
    // Until the kernel takes no more, and other clients are served meanwhile.
    for (let before = -1; before !== handled || pending === 0; ) {
      before = handled;
      for (let i = 0; i < 20; i++) await callOnce(port, '/other');
    }
    expect(most).toBe(1);
    expect(handled).toBeLessThan(200);
  });

  it('requests that arrive one by one, and no response is ready → one is handled', async () => {
    let handled = 0;
    const port = await open((incoming, outgoing) => {
      if (incoming.url === '/other') outgoing.end();
      else handled++;
    });
    const socket = await call(port);
    for (let i = 0; i < 200; i++) {
      socket.write(pipeline(1));
      await setImmediate();
    }
    for (let before = -1; before !== handled; ) {
      before = handled;
      for (let i = 0; i < 20; i++) await callOnce(port, '/other');
    }
    expect(handled).toBe(1);
  });

  it('an unmet Expect in each request, never read → one is pending, then no more are read', async () => {
    const port = await open(echo);
    const other = await call(port);
    const socket = await callWithoutReading(port);
    const request = 'GET / HTTP/1.1\r\nHost: a\r\nExpect: a\r\n\r\n';
    socket.write(request.repeat(200_000));
    for (let before = -1; before !== socket.writableLength; ) {
      before = socket.writableLength;
      for (let i = 0; i < 20; i++) await callOnce(port, '/other');
    }
    expect(socket.writableLength).toBeGreaterThan(0);
    other.write(request);
    expect(String((await once(other, 'data'))[0])).toMatch(/^HTTP\/1\.1 417 /);
  });

  it('no byte is read within the time limit → the connection is closed', async () => {
    let closed = 0;
    const port = await open(
      (incoming, outgoing) => {
        if (incoming.url === '/0') incoming.socket.once('close', () => closed++);
        outgoing.end(large);
      },
      { unreadTimeout: 1 },
    );
    (await callWithoutReading(port)).write(pipeline(64));
    await until(() => closed === 1);
  });

  it('a client that reads slowly, and never for the time limit → all responses', async () => {
    const port = await open((_, outgoing) => void outgoing.end(`${large}<end>`), { unreadTimeout: 2 });
    const socket = await callWithoutReading(port);
    socket.write(pipeline(20));
    let bytes = 0;
    let answers = 0;
    while (answers < 20) {
      const chunk: Buffer | null = socket.read();
      if (chunk === null) {
        await once(socket, 'readable');
        continue;
      }
      bytes += chunk.length;
      answers += chunk.toString('latin1').split('<end>').length - 1;
      // Longer in all than the time limit; never so long in one go.
      await new Promise((resolve) => setTimeout(resolve, 15));
    }
    expect(bytes).toBeGreaterThan(20 * large.length);
    expect(socket.destroyed).toBe(false);
  });

  it('30 connections that never read → none is closed, and a client that pipelines and reads gets all responses', async () => {
    let closed = 0;
    const seen = new Set<Socket>();
    const port = await open(
      (incoming, outgoing) => {
        const { socket } = incoming;
        if (!seen.has(socket)) socket.once('close', () => closed++);
        seen.add(socket);
        outgoing.end(incoming.headers['x-size'] === 'large' ? large : `<${incoming.url}>`);
      },
      { unreadTimeout: 600 },
    );
    const request = 'GET /0 HTTP/1.1\r\nHost: a\r\nX-Size: large\r\n\r\n';
    for (let i = 0; i < 30; i++) (await callWithoutReading(port)).write(request.repeat(100));
    const socket = await call(port);
    socket.write(pipeline(500));
    expect(await readTargets(socket, 500)).toEqual(expected(500));
    expect(closed).toBe(0);
  });

  it('a request waits for its turn longer than an idle connection may → handled', async () => {
    const others: Socket[] = [];
    const port = await open(
      (incoming, outgoing) => {
        // Node adds a second to the time of an idle connection.
        if (incoming.headers['x-slow'] !== undefined) stall(700);
        if (incoming.url === '/9') for (const other of others) other.write(slow.repeat(2));
        outgoing.end(`<${incoming.url}>`);
      },
      { keepAlive: 0.02 },
    );
    const slow = 'GET /0 HTTP/1.1\r\nHost: a\r\nX-Slow: 1\r\n\r\n';
    for (let i = 0; i < 3; i++) others.push(await call(port));
    const socket = await call(port);
    socket.write(pipeline(1000));
    expect(await readTargets(socket, 1000)).toEqual(expected(1000));
  });

  it('a request arrives while this process stalls for longer than an idle connection may last → handled', async () => {
    const socket = await call(await open(echo, { keepAlive: 0.02 }));
    socket.write(pipeline(1));
    const [first] = (await once(socket.setEncoding('latin1'), 'data')) as [string];
    socket.write(pipeline(1, 1));
    stall(1200);
    const [second] = await Promise.race([once(socket, 'data'), once(socket, 'close')]);
    expect([first, String(second)]).toEqual([expect.stringContaining('</0>'), expect.stringContaining('</1>')]);
  });

  it('a response that begins as the time of an unread one ends → sent', async () => {
    const port = await open((_incoming, outgoing) => void outgoing.once('timeout', () => outgoing.end('late')), {
      unreadTimeout: 0.2,
    });
    const socket = await call(port);
    socket.write(pipeline(1));
    const [received] = await Promise.race([once(socket, 'data'), once(socket, 'close')]);
    expect(String(received)).toContain('late');
  });

  it('a connection that is closed → the rest of what was read is not handled', async () => {
    let handled = 0;
    const port = await open((incoming) => {
      handled++;
      incoming.socket.destroy();
    });
    const socket = await call(port);
    socket.write(pipeline(1000));
    await once(socket, 'close');
    expect(handled).toBe(1);
  });

  it.each([1, 7, 64, 1000, 16_384])(
    'bodies that hold blank lines, sent in parts of %i bytes → each its own',
    async (size) => {
      const port = await open((incoming, outgoing) => {
        let body = '';
        incoming.on('data', (chunk) => {
          body += chunk;
        });
        incoming.on('end', () => outgoing.end(`<${incoming.url} ${body.length}>`));
      });
      const body = 'GET / HTTP/1.1\r\n\r\n'.repeat(9);
      const count = size === 1 ? 3 : 90;
      const text = Array.from({ length: count }, (_, i) =>
        i % 2 === 0
          ? `POST /${i} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`
          : `POST /${i} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
      ).join('');
      const socket = await call(port);
      socket.setNoDelay(true);
      const answers = readTargets(socket, count);
      for (let at = 0; at < text.length; at += size) socket.write(text.slice(at, at + size));
      expect(await answers).toEqual(Array.from({ length: count }, (_, i) => `</${i} ${body.length}>`));
    },
  );
});

describe('the size of a head', () => {
  const begin = 'GET / HTTP/1.1\r\nHost: a\r\n';
  const fill = (line: string, kibibytes: number) => begin + line.repeat((kibibytes * 1024) / line.length);
  /** Sends these pieces, and reads the statuses until the connection closes. */
  const send = async (...pieces: readonly string[]) => {
    const socket = await call(await open(echo));
    for (const piece of pieces) {
      socket.write(piece, 'latin1');
      await sleep(50);
    }
    let text = '';
    for await (const chunk of socket.setEncoding('latin1')) text += chunk;
    return text.match(/(?<=HTTP\/1\.1 )\d+/g);
  };
  const close = 'Connection: close\r\n\r\n';

  it.each([
    ['short lines', 'ab:\r\n'],
    ['white space', `a:${' '.repeat(1000)}\r\n`],
  ])('40 KiB of %s → 431, also if the head is incomplete', async (_name, line) => {
    expect(await send(fill(line, 40) + close)).toEqual(['431']);
    expect(await send(fill(line, 20), fill(line, 20).slice(begin.length))).toEqual(['431']);
  });

  it.each([
    ['in one piece', [fill('ab:\r\n', 31) + close]],
    ['cut within', [fill('ab:\r\n', 20), `${fill('ab:\r\n', 11).slice(begin.length)}Connection: cl`, 'ose\r\n\r\n']],
    ['cut in the blank line', [`${fill('ab:\r\n', 31)}Connection: close\r\n\r`, '\n']],
  ])('31 KiB of short lines, %s → 200', async (_name, pieces) => {
    expect(await send(...pieces)).toEqual(['200']);
  });

  it('31 KiB in pieces, and the next request in the last one → 200, 200', async () => {
    const head = `${fill('ab:\r\n', 31)}\r\n`;
    expect(await send(head.slice(0, 9000), `${head.slice(9000)}${begin}${close}`)).toEqual(['200', '200']);
  });

  it('a long head that is not HTTP → 400 at its first bytes', async () => {
    expect(await send('\x16\x03\x01'.repeat(5000))).toEqual(['400']);
  });
});
