import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { finished } from 'node:stream/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { endEmptyRequest } from '../../../src/service/process/empty-requests.ts';

const opened: { readonly servers: Server[]; readonly sockets: Socket[] } = { servers: [], sockets: [] };
afterEach(() => {
  for (const socket of opened.sockets.splice(0)) socket.destroy();
  for (const server of opened.servers.splice(0)) server.close();
});

/** A connection to a server that ends empty requests before it looks at them. */
async function open(look: (incoming: IncomingMessage, outgoing: ServerResponse) => unknown): Promise<Socket> {
  const server = createServer((incoming, outgoing) => {
    endEmptyRequest(incoming);
    look(incoming, outgoing);
  }).listen(0, '127.0.0.1');
  opened.servers.push(server);
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').setEncoding('latin1'); // it listens on TCP
  opened.sockets.push(socket);
  return socket;
}

const get = 'GET /empty HTTP/1.1\r\nHost: a\r\n\r\n';

describe('a request without a body', () => {
  it('has ended, for everybody who reads it', async () => {
    const socket = await open(async (incoming, outgoing) => {
      const seen = [incoming.readableEnded, await text(incoming), incoming.read()];
      await finished(incoming);
      outgoing.end(JSON.stringify(seen));
    });
    socket.write(get);
    const [answer] = await once(socket, 'data');
    expect(answer).toContain('[true,"",null]');
  });

  it('emits nothing, and the next requests on its connection are answered', async () => {
    const events: string[] = [];
    const socket = await open((incoming, outgoing) => {
      for (const event of ['data', 'end', 'close', 'error']) incoming.on(event, () => events.push(event));
      outgoing.end(`answer to ${incoming.url}`);
    });
    for (let i = 0; i < 3; i++) {
      socket.write(get);
      await once(socket, 'data');
    }
    let received = '';
    socket.on('data', (chunk) => {
      received += chunk;
    });
    socket.write(get.repeat(3));
    while (received.split('answer to /empty').length < 4) await once(socket, 'data');
    expect(events).toEqual([]);
  });

  it('whose client has gone tells so by its answer', async () => {
    const asked = new EventEmitter();
    const socket = await open((_incoming, outgoing) => asked.emit('request', outgoing));
    socket.write(get);
    const [outgoing] = await once(asked, 'request');
    const closed = once(outgoing, 'close');
    socket.destroy();
    await closed;
    expect(outgoing.writableFinished).toBe(false);
  });
});

describe('a request with a body is read as ever', () => {
  it.each([
    ['a length', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello', 'hello'],
    [
      'chunks',
      'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n',
      'hello',
    ],
    ['a length of 0', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n', ''],
    ['a GET with a length', 'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello', 'hello'],
  ])('%s', async (_name, sent, body) => {
    const socket = await open(async (incoming, outgoing) => {
      const { readableEnded } = incoming;
      outgoing.end(`answer ${JSON.stringify([readableEnded, await text(incoming)])}`);
    });
    let received = '';
    socket.on('data', (chunk) => {
      received += chunk;
    });
    socket.write(`${sent}${get}`);
    while (received.split('answer').length < 3) await once(socket, 'data');
    expect(received.match(/answer .*?]/g)).toEqual([`answer [false,"${body}"]`, 'answer [true,""]']);
  });
});
