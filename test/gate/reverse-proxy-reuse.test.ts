import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { answerHeads, areGone, ok, open, type RawUpstream, sendRaw, soon, stage } from './proxied.ts';

/** Bytes that a client must not receive as the response to its request. */
const stray = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison';

const get = 'GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
const post = 'POST /next HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello';
const isWhole = (arrived: string): boolean =>
  arrived.endsWith('hello') || (arrived.endsWith('\r\n\r\n') && !/\r\nContent-Length: 5\r\n.*$/s.test(arrived));

const noContent = 'HTTP/1.1 204 No Content\r\n\r\n';
const notModified = 'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n';
const large = `HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n${'x'.repeat(300_000)}`;
const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n';

const head: [string, string, string] = ['HEAD', get.replace('GET', 'HEAD'), ok.slice(0, -2)];

/** When the stray bytes follow the response. */
const delays = {
  'with it': undefined,
  'just after it': () => Promise.resolve(),
  'an event-loop iteration later': () => setImmediate(),
  '50 ms later': () => sleep(50),
};
type Delay = keyof typeof delays;

/** Responds to the first request with `first` and then the stray bytes, to the others with 200 after these. */
function stageStray(first: string, when: Delay) {
  let isFirst = true;
  let follow = (): void => {};
  const hasStrayed = new Promise<void>((resolve) => {
    follow = resolve;
  });
  return stage(async (socket, arrived) => {
    if (!isWhole(arrived)) return;
    if (!isFirst) {
      await hasStrayed.then(() => sleep(20));
      socket.write(ok);
      return;
    }
    isFirst = false;
    const delay = delays[when];
    socket.write(delay === undefined ? first + stray : first);
    await delay?.();
    if (delay !== undefined) socket.write(stray);
    follow();
  });
}

async function sendAndLeave(port: number, bytes: string, upstream: RawUpstream): Promise<void> {
  const socket = open(port, bytes);
  await soon(() => expect(upstream.arrivals.some(isWhole)).toBe(true));
  socket.destroy();
}

describe.each([
  ['the pool', get],
  ['the agent', post],
])('%s: a connection that is not used again', (_client, request) => {
  // After an orderly close its local port would be in use for a minute, and the ports of all are few.
  it.each([
    ['204', noContent, sendRaw],
    ['304', notModified, sendRaw],
    ['a client that leaves', '', sendAndLeave],
  ])('%s → reset', async (_name, response, send) => {
    const errors: (string | undefined)[] = [];
    const { upstream, proxied } = await stage((socket, arrived) => {
      if (!isWhole(arrived)) return;
      socket.on('error', ({ code }: NodeJS.ErrnoException) => errors.push(code));
      socket.write(response);
    });
    await send(proxied.port, request, upstream);
    await soon(() => expect(errors).toEqual(['ECONNRESET']));
  });
});

describe.each([
  ['the pool', get],
  ['the agent', post],
])('%s: bytes that no request expects', (_client, request) => {
  describe.each(Object.keys(delays) as Delay[])('%s', (when) => {
    it.each<[string, string, string]>([
      ['204', request, noContent],
      ['304', request, notModified],
      ...(request === get ? [head] : []),
    ])('after %s → not the response to the next request, sent at once', async (_name, first, response) => {
      const { upstream, proxied } = await stageStray(response, when);
      expect(await sendRaw(proxied.port, first)).toMatch(/^HTTP\/1\.1 /);
      expect(await sendRaw(proxied.port, request)).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\nok$/);
      expect(upstream.arrivals).toHaveLength(2);
    });

    it.each([
      ['Content-Length', ok],
      ['Content-Length, in many reads', large],
      ['chunks', chunked],
    ])('after a body with %s → the connection ends before its next use', async (_name, response) => {
      const { upstream, proxied } = await stageStray(response, when);
      await sendRaw(proxied.port, request);
      await soon(() => expect(upstream.sockets.size).toBe(0));
      expect(await sendRaw(proxied.port, request)).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\nok$/);
      expect(upstream.arrivals).toHaveLength(2);
    });
  });
});

it('a request whose upstream is closed before it is forwarded → 200, and no connection stays', async () => {
  const parts = await stage(answerHeads());
  await sendRaw(parts.proxied.port, get);
  parts.proxied.proxy.retire();
  expect(await sendRaw(parts.proxied.port, get)).toMatch(/^HTTP\/1\.1 200 /);
  await areGone(parts);
});
