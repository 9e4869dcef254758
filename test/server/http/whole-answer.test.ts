import { EventEmitter, once } from 'node:events';
import { createServer, OutgoingMessage, type RequestListener, type Server, ServerResponse } from 'node:http';
import { type AddressInfo, connect, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Answer, createAnswer, sendAnswer } from '../../../src/server/http/answer.ts';
import { createSendWhole } from '../../../src/server/http/whole-answer.ts';

const keepAlive = 5;
const sendWhole = createSendWhole(keepAlive);

const opened: { readonly servers: Server[]; readonly sockets: Socket[] } = { servers: [], sockets: [] };
afterEach(() => {
  vi.restoreAllMocks();
  for (const socket of opened.sockets.splice(0)) socket.destroy();
  for (const server of opened.servers.splice(0)) server.close();
});

/** A server that calls this listener; its port. */
async function serve(onRequest: RequestListener): Promise<number> {
  const server = createServer({ keepAliveTimeout: keepAlive * 1000 }, onRequest).listen(0, '127.0.0.1');
  opened.servers.push(server);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port; // it listens on TCP
}

function call(port: number): Socket {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1');
  opened.sockets.push(socket);
  return socket;
}

/** The answer of the first request to a server, and who has asked and reads nothing. */
async function serveOne(send: (outgoing: ServerResponse) => void): Promise<readonly [ServerResponse, Socket]> {
  const asked = new EventEmitter();
  const port = await serve((_incoming, outgoing) => {
    send(outgoing);
    asked.emit('request', outgoing);
  });
  const socket = call(port);
  socket.write(get);
  socket.pause();
  const [outgoing] = await once(asked, 'request');
  return [outgoing, socket];
}

/** No kernel takes it at once. */
const large = createAnswer(200, [], 'x'.repeat(32 * 1024 * 1024));
const last = createAnswer(200, ['content-type', 'text/plain'], 'the last');

/** All that is answered to these requests and one more, the last on the connection; dates are taken out. */
async function exchange(port: number, sent: string): Promise<string> {
  const socket = call(port);
  let received = '';
  socket.on('data', (text) => {
    received += text;
  });
  socket.write(`${sent}GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  await once(socket, 'close');
  return received.replace(/Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT/g, 'Date: -');
}

const respondWith =
  (send: typeof sendAnswer, answer: Answer): RequestListener =>
  ({ url }, outgoing) =>
    send(url === '/last' ? last : answer, outgoing, url === '/with-id' ? 'a1b2-7' : undefined);

const get = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

describe('the bytes are those that Node sends', () => {
  const challenge = 'DPoP error="invalid_token", error_description="The access token is malformed.", algs="ES256"';
  const answers: readonly (readonly [string, Answer])[] = [
    ['200 with a body', createAnswer(200, ['content-type', 'application/json', 'cache-control', 'no-store'], '{}')],
    ['401 with two challenges', createAnswer(401, ['www-authenticate', challenge, 'www-authenticate', 'Bearer'], '{}')],
    ['no body', createAnswer(200, ['x-auth-subject', 'somebody'], '')],
    ['204', createAnswer(204, ['vary', 'Origin'], '')],
    ['304', createAnswer(304, ['etag', '"a"'], '')],
    ['a status without a phrase', createAnswer(299, [], 'odd')],
    ['a body of several bytes a character', createAnswer(200, ['content-type', 'text/plain'], 'Jürgen, 東京, 🗝')],
    ['a body that fills many packets', createAnswer(200, ['content-type', 'text/plain'], 'body '.repeat(50_000))],
    ['headers that were added', createAnswer(404, ['content-type', 'text/plain'], 'none').with('x-request-id', 'a-1')],
    ['an answer that is the last', last],
  ];
  const requests: readonly (readonly [string, string])[] = [
    ['GET', get],
    ['HEAD', 'HEAD / HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['POST with a body', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc'],
    ['HTTP/1.0 that keeps the connection', 'GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n'],
    ['HTTP/1.0', 'GET / HTTP/1.0\r\n\r\n'],
    ['three at once', get.repeat(3)],
    ['GET, with the id of its log line', 'GET /with-id HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['GET that closes the connection', 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'],
    ['POST in chunks', 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n'],
    ['an expectation', 'POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc'],
  ];
  it.each(answers)('%s', async (_name, answer) => {
    const [ours, nodes] = [await serve(respondWith(sendWhole, answer)), await serve(respondWith(sendAnswer, answer))];
    for (const [name, sent] of requests) {
      const expected = await exchange(nodes, sent);
      expect(expected, name).toContain(`HTTP/1.1 ${answer.status}`);
      expect(await exchange(ours, sent), name).toBe(expected);
    }
  });
});

describe('the test of itself', () => {
  it('on this version of Node → passed', () => {
    expect(createSendWhole(keepAlive)).not.toBe(sendAnswer);
  });

  const head = Object.getOwnPropertyDescriptor(OutgoingMessage.prototype, 'headersSent');
  const write = (socket: Socket | null, text: string): boolean => socket?.write(text) ?? false;
  it.each<readonly [string, () => unknown]>([
    [
      'sends a head of its own',
      () =>
        vi.spyOn(ServerResponse.prototype, 'end').mockImplementation(function (this: ServerResponse) {
          write(this.socket, 'HTTP/1.1 200 OK\r\n\r\n');
          return this;
        }),
    ],
    [
      'sends more after it',
      () =>
        vi.spyOn(ServerResponse.prototype, 'end').mockImplementationOnce(function (this: ServerResponse) {
          write(this.socket, '0\r\n\r\n');
          return this.end();
        }),
    ],
    ['has not ended', () => vi.spyOn(ServerResponse.prototype, 'end').mockReturnThis()],
    [
      'keeps the head elsewhere',
      () => Object.defineProperty(OutgoingMessage.prototype, 'headersSent', { ...head, get: () => false }),
    ],
    [
      'throws',
      () =>
        vi.spyOn(ServerResponse.prototype, 'assignSocket').mockImplementation(() => {
          throw new TypeError('not a socket');
        }),
    ],
  ])('a version that %s → the responses of Node', async (_name, change) => {
    change();
    const chosen = createSendWhole(keepAlive);
    vi.restoreAllMocks();
    Object.defineProperty(OutgoingMessage.prototype, 'headersSent', { ...head });
    expect(chosen).toBe(sendAnswer);
  });
});

describe('in one piece', () => {
  it('a header byte → one byte, as in RFC 9110; appended to a string, Node would write two', async () => {
    const port = await serve(respondWith(sendWhole, createAnswer(200, ['x-name', 'J\xfcrgen'], 'a')));
    expect(await exchange(port, get)).toContain('x-name: J\xfcrgen\r\n');
  });

  it('a response is one write', async () => {
    const writes = vi.spyOn(Socket.prototype, 'write');
    const port = await serve((_incoming, outgoing) => {
      writes.mockClear();
      sendWhole(createAnswer(200, [], 'one piece'), outgoing);
      expect(outgoing.writableEnded).toBe(true);
      expect(writes.mock.calls.map(([text]) => String(text).endsWith('one piece'))).toEqual([true]);
    });
    const socket = call(port);
    socket.write(get);
    await once(socket, 'data');
    expect(writes).toHaveBeenCalled();
  });

  it('the time is the second in which a response is sent', async () => {
    const port = await serve((_incoming, outgoing) => sendWhole(last, outgoing));
    const socket = call(port);
    const dates = [];
    for (const time of [1_800_000_000_999, 1_800_000_001_000]) {
      vi.spyOn(Date, 'now').mockReturnValue(time);
      socket.write(get);
      const [text] = await once(socket, 'data');
      dates.push(/Date: (.*)\r\n/.exec(text)?.[1]);
    }
    expect(dates).toEqual(['Fri, 15 Jan 2027 08:00:00 GMT', 'Fri, 15 Jan 2027 08:00:01 GMT']);
  });
});

describe('order and end', () => {
  it('responses that are ready backwards leave in the order of their requests', async () => {
    const waiting: ServerResponse[] = [];
    const port = await serve((_incoming, outgoing) => {
      waiting.push(outgoing);
      if (waiting.length < 3) return;
      for (const [i, each] of [...waiting.entries()].reverse()) sendWhole(createAnswer(200, [], `answer ${i}`), each);
    });
    const socket = call(port);
    let received = '';
    socket.on('data', (text) => {
      received += text;
    });
    socket.write(get.repeat(3));
    while (!received.includes('answer 2')) await once(socket, 'data');
    expect(received.match(/answer \d/g)).toEqual(['answer 0', 'answer 1', 'answer 2']);
  });

  it('is finished once the kernel has taken all of it, not before', async () => {
    const [outgoing, socket] = await serveOne((each) => sendWhole(large, each));
    let finished = false;
    outgoing.once('finish', () => {
      finished = true;
    });
    await sleep(50);
    expect([finished, outgoing.writableFinished]).toEqual([false, false]);
    socket.resume();
    await once(outgoing, 'close');
    expect([finished, outgoing.writableFinished]).toEqual([true, true]);
  });

  it('a connection that breaks closes its response', async () => {
    const [outgoing, socket] = await serveOne((each) => sendWhole(large, each));
    socket.resetAndDestroy();
    await once(outgoing, 'close');
    expect(outgoing.writableEnded).toBe(true);
  });

  it('many responses on one connection, one after the other', async () => {
    const port = await serve(respondWith(sendWhole, createAnswer(200, [], 'again')));
    expect((await exchange(port, get.repeat(200))).match(/again/g)).toHaveLength(200);
    const socket = call(port);
    for (let i = 0; i < 200; i++) {
      socket.write(get);
      await once(socket, 'data');
    }
  });

  it('a connection that is closed gets nothing', async () => {
    const [outgoing, socket] = await serveOne(() => undefined);
    socket.destroy();
    await once(outgoing, 'close');
    expect(() => sendWhole(last, outgoing)).not.toThrow();
  });
});

describe('a value that would break out of its line', () => {
  it.each(['a\r\nset-cookie: b', 'a\nb', 'a\0', '東京'])('%j is not sent', (value) => {
    expect(() => createAnswer(200, ['x-auth-name', value], '').head).toThrow(TypeError);
    expect(() => createAnswer(200, [], '').with('x-auth-name', value).head).toThrow(TypeError);
  });
});
