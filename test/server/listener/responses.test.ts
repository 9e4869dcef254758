import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createIntake, SocketWriter } from '../../../src/server/listener/intake.ts';
import { useListeners } from '../../support/raw-listeners.ts';

const { open: listen, dial } = useListeners();
const open = (onRequest: RequestListener): Promise<number> => listen({ onRequest });

async function exchange(port: number, bytes: string): Promise<string> {
  const socket = (await dial(port)).setEncoding('latin1');
  socket.write(bytes);
  let text = '';
  for await (const part of socket) text += String(part);
  return text;
}

const last = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
const bodyOf = (response: string): string => response.slice(response.indexOf('\r\n\r\n') + 4);

describe('a response', () => {
  it('to each of 100 connections, in one event-loop iteration → each is complete', async () => {
    const waiting: (() => void)[] = [];
    const port = await open((_incoming, outgoing) => {
      if (waiting.push(() => void outgoing.end(`${outgoing.req.headers['x-name']}`)) === 100)
        for (const respond of waiting) respond();
    });
    const responses = await Promise.all(
      Array.from({ length: 100 }, (_, i) => exchange(port, last.replace('\r\n\r\n', `\r\nX-Name: n${i}\r\n\r\n`))),
    );
    expect(responses.map(bodyOf)).toEqual(Array.from({ length: 100 }, (_, i) => `n${i}`));
  });

  it('in pieces that await drain → all bytes in order, each callback once', async () => {
    const pieces = Array.from({ length: 300 }, (_, i) => String.fromCharCode(0x61 + (i % 26)).repeat(10_000));
    let taken = 0;
    let drains = 0;
    const port = await open((_incoming, outgoing) => {
      const writeRest = (from: number): void => {
        for (let i = from; i < pieces.length; i++) {
          if (outgoing.write(pieces[i], 'latin1', () => void taken++)) continue;
          drains++;
          return void outgoing.once('drain', () => writeRest(i + 1));
        }
        outgoing.end();
      };
      outgoing.writeHead(200, { 'content-length': 3_000_000 });
      writeRest(0);
    });
    expect(bodyOf(await exchange(port, last)) === pieces.join('')).toBe(true);
    expect([taken, drains > 0]).toEqual([300, true]);
  });

  it('characters outside ASCII, by the encoding of each piece → the same bytes', async () => {
    const port = await open((_incoming, outgoing) => {
      outgoing.writeHead(200, { 'content-length': 5 });
      outgoing.write('é', 'latin1');
      outgoing.write('é');
      outgoing.end(Buffer.from('é'));
    });
    expect(bodyOf(await exchange(port, last))).toBe('\xe9\xc3\xa9\xc3\xa9');
  });

  it('to a client that has disconnected → its callbacks are called', async () => {
    const outcomes: Promise<unknown>[] = [];
    const port = await open((_incoming, outgoing) => {
      outgoing.writeHead(200, { 'content-length': 4 });
      const write = () => outcomes.push(new Promise((resolve) => outgoing.write('ab', 'latin1', resolve)));
      write();
      outgoing.socket?.destroy();
      outcomes.push(once(outgoing, 'close'));
    });
    const socket = await dial(port);
    socket.write(last);
    await once(socket.resume(), 'close');
    expect(await Promise.all(outcomes)).toHaveLength(2);
  });
});

it('a piece is written while the kernel takes the one before → drain once nothing waits', async () => {
  const taken: (() => void)[] = [];
  // It waits for the kernel with each piece.
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => void taken.push(done) });
  class Connection extends SocketWriter {}
  const connection = new Connection(socket as Socket, createIntake());
  const waiting: number[] = [];
  connection.on('drain', () => waiting.push(connection.writableLength));
  expect(connection.write(Buffer.alloc(connection.writableHighWaterMark))).toBe(false);
  await setImmediate();
  expect(connection.write('x')).toBe(false);
  taken.shift()?.();
  expect(waiting).toEqual([]);
  await setImmediate();
  taken.shift()?.();
  expect(waiting).toEqual([0]);
});

describe('a request without a body', () => {
  it('that the application reads → an end', async () => {
    const port = await open((incoming, outgoing) => {
      // Node 24.10 and later: it has ended.
      if (incoming.readableEnded) outgoing.end('read');
      else incoming.on('data', () => {}).on('end', () => outgoing.end('read'));
    });
    expect(bodyOf(await exchange(port, last))).toBe('read');
  });

  it('without a reader, and the one after it → a response each', async () => {
    const port = await open((incoming, outgoing) => void outgoing.end(incoming.url));
    const first = last.replace('Connection: close\r\n', '').replace('/', '/1');
    expect((await exchange(port, first + last.replace('/', '/2'))).match(/\/\d$|\/\d(?=HTTP)/g)).toEqual(['/1', '/2']);
  });
});
