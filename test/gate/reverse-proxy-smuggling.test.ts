import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ok, open, type Proxied, type RawUpstream, sendRaw, soon, startProxied, startRawUpstream } from './proxied.ts';
import { type SmugglingCase, smugglingCases } from './smuggling-cases.ts';
import { readStrictly, type StrictRequest } from './strict-request.ts';

let upstream: RawUpstream;
let proxied: Proxied;
/** Requests that were judged: each that arrives must be one of these. */
let judged = 0;

const identity = { names: ['X-Auth-Subject', 'X-Auth-Scope'], values: ['me', ''] };

beforeAll(async () => {
  const answered = new WeakMap<object, number>();
  upstream = await startRawUpstream((socket, arrived) => {
    let requests: readonly StrictRequest[];
    try {
      ({ requests } = readStrictly(arrived));
    } catch {
      // The test reads it again, and says what is wrong.
      socket.destroy();
      return;
    }
    for (const { line } of requests.slice(answered.get(socket)))
      socket.write(line.startsWith('HEAD ') ? ok.slice(0, -2) : ok);
    answered.set(socket, requests.length);
  });
  proxied = await startProxied({
    upstream: upstream.url,
    identity,
    timeout: 5,
    before: () => {
      judged++;
      return false;
    },
  });
});
afterAll(async () => {
  await proxied.close();
  await upstream.close();
});

/** Whole, or byte by byte, so that no end of a read falls together with an end of something that is parsed. */
async function send(bytes: string, way: 'whole' | 'byte by byte'): Promise<string> {
  if (way === 'whole') return sendRaw(proxied.port, bytes).catch(() => '');
  const socket = open(proxied.port).setNoDelay();
  await once(socket, 'connect');
  const answer = text(socket).catch(() => '');
  for (const byte of Buffer.from(bytes, 'latin1')) {
    if (socket.destroyed) break;
    socket.write(Buffer.from([byte]));
    await setImmediate();
  }
  return answer;
}

function readArrivals(from: ReadonlyMap<number, number>): readonly StrictRequest[] {
  return upstream.arrivals.flatMap((bytes, place) => {
    const { requests } = readStrictly(bytes);
    return requests.slice(from.get(place) ?? 0);
  });
}

const countArrived = (): ReadonlyMap<number, number> =>
  new Map(upstream.arrivals.map((bytes, place) => [place, readStrictly(bytes).requests.length]));

const fence = 'GET /fence HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n\r\n';
const describeRequest = ({ line, body }: StrictRequest): string => `${line.replace(/ HTTP\/1\.1$/, '')} ${body}`;

async function attempt(
  { bytes, arrives, mayBeCut = false, trailers = [] }: SmugglingCase,
  way: 'whole' | 'byte by byte',
): Promise<void> {
  const before = countArrived();
  const judgedBefore = judged;
  const answer = await send(bytes, way);
  // What is still on its way to the upstream arrives before this.
  await send(fence, 'whole');
  const arrived = readArrivals(before)
    .filter(({ line }) => !line.includes('/fence'))
    .toSorted((a, b) => arrives.indexOf(describeRequest(a)) - arrives.indexOf(describeRequest(b)));
  const seen = arrived.map(describeRequest);
  expect(seen).toEqual(mayBeCut ? arrives.slice(0, seen.length) : arrives);
  expect(arrived.length).toBeLessThanOrEqual(judged - judgedBefore - 1);
  expect(arrived.flatMap((request) => request.trailers)).toEqual(trailers);
  for (const { headers } of arrived) {
    const values = (name: string): readonly string[] =>
      headers.filter(([each]) => each === name).map(([, value]) => value);
    expect(values('X-Auth-Subject')).toEqual(['me']);
    expect(values('X-Auth-Scope')).toEqual(['']);
    expect(values('X-Forwarded-For')).toEqual(['127.0.0.1']);
    expect(values('X-Forwarded-Proto')).toEqual(['http']);
    expect(values('X-Forwarded-Host')).toEqual(['api.example']);
    expect(JSON.stringify(headers)).not.toMatch(/you|evil|1\.2\.3\.4|a\.b\.c|smuggled|DELETE/);
  }
  const statuses = [...answer.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
  if (arrives.length === 0) for (const status of statuses) expect([400, 417, 431, 505]).toContain(status);
  else if (!mayBeCut) expect(statuses.filter((status) => status === 200)).toHaveLength(arrives.length);
}

describe('nothing arrives that can be read in two ways', () => {
  it('at least 60 attempts, with unique names', () => {
    expect(smugglingCases.length).toBeGreaterThanOrEqual(60);
    expect(new Set(smugglingCases.map(({ name }) => name)).size).toBe(smugglingCases.length);
  });

  it.each(smugglingCases)('$name', async (tried) => {
    await attempt(tried, 'whole');
    await attempt(tried, 'byte by byte');
  });
});

describe('an upload that ends too early', () => {
  it.each([
    ['a length', 'Content-Length: 90\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: api.example\r\n\r\n'],
    ['chunks', 'Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n'],
    [
      'chunks, in the middle of one',
      'Transfer-Encoding: chunked\r\n\r\n50\r\nGET /smuggled HTTP/1.1\r\nHost: api.example\r\n\r\n',
    ],
    ['chunks, in the middle of the trailers', 'Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-A: b\r\n'],
  ])('with %s → never looks whole, and its connection is not used again', async (name, rest) => {
    const path = `/cut-${name.replaceAll(/[^a-z]/g, '')}`;
    const before = countArrived();
    const socket = open(proxied.port, `POST ${path} HTTP/1.1\r\nHost: api.example\r\n${rest}`);
    const findPlace = (): number => upstream.arrivals.findIndex((bytes) => bytes.includes(path));
    await soon(() => expect(findPlace()).toBeGreaterThanOrEqual(0));
    const place = findPlace();
    socket.destroy();
    await soon(() => expect(proxied.proxy.inFlight()).toBe(0));
    await send('GET /next HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n\r\n', 'whole');
    expect(readArrivals(before).map(({ line }) => line)).toEqual(['GET /next HTTP/1.1']);
    expect(upstream.arrivals[place]?.slice(upstream.arrivals[place]?.indexOf(path))).not.toContain('/next');
  });
});
