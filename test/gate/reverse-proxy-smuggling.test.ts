import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ok, open, type Proxied, type RawUpstream, sendRaw, soon, startProxied, startRawUpstream } from './proxied.ts';
import { type SmugglingCase, smugglingCases } from './smuggling-cases.ts';

/** One request as the strictest reader sees it. */
interface StrictRequest {
  readonly line: string;
  /** Lines in their order. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  readonly trailers: readonly string[];
}

/** What a connection has brought so far. */
interface StrictReading {
  readonly requests: readonly StrictRequest[];
  /** What is behind the last whole request. */
  readonly rest: string;
}

const requestLine = /^[A-Z]+ \/[\x21-\x7e]* HTTP\/1\.1$/;
const headerLine = /^([\w!#$%&'*+.^`|~-]+): ([\t\x20-\x7e\x80-\xff]*)$/;
/** Names of which any spelling may come once: readers that take other signs for `-` would join or mix them up. */
const single = /^(?:host|content-length|transfer-encoding|connection|authorization|dpop|via|x-auth-.*|x-forwarded-.*)$/;
const never =
  /^(?:keep-alive|te|upgrade|proxy-.*|proxy|forwarded|http2-settings|x-original-url|x-rewrite-url|x-http-method.*|x-method-override)$/;

const plain = (name: string): string => name.toLowerCase().replace(/[^a-z\d]/g, '-');

/** Reads what arrived, and throws for anything that two readers could understand in two ways. */
function readStrictly(bytes: string): StrictReading {
  const requests: StrictRequest[] = [];
  let rest = bytes;
  for (;;) {
    const end = rest.indexOf('\r\n\r\n');
    if (end < 0) return { requests, rest };
    const [line = '', ...lines] = rest.slice(0, end).split('\r\n');
    if (!requestLine.test(line)) throw new Error(`request line: ${JSON.stringify(line)}`);
    const headers = lines.map((text) => {
      const [, name, value] = headerLine.exec(text) ?? [];
      if (name === undefined || value === undefined) throw new Error(`header line: ${JSON.stringify(text)}`);
      return [name, value] as const;
    });
    checkNames(headers.map(([name]) => name));
    const read = readBody(new Map(headers.map(([name, value]) => [name.toLowerCase(), value])), rest.slice(end + 4));
    if (read === undefined) return { requests, rest };
    requests.push({ line, headers, body: read.body, trailers: read.trailers });
    rest = read.rest;
  }
}

function checkNames(names: readonly string[]): void {
  const seen = new Set<string>();
  for (const name of names) {
    const spelled = plain(name);
    if (never.test(spelled)) throw new Error(`${name} must not arrive`);
    if (!single.test(spelled)) continue;
    if (spelled !== name.toLowerCase() || seen.has(spelled)) throw new Error(`${name} in a second spelling`);
    seen.add(spelled);
  }
  if (!seen.has('host')) throw new Error('no Host');
  if (seen.has('content-length') && seen.has('transfer-encoding')) throw new Error('a length and chunks');
}

interface ReadBody {
  readonly body: string;
  readonly trailers: readonly string[];
  readonly rest: string;
}

function readBody(headers: ReadonlyMap<string, string>, bytes: string): ReadBody | undefined {
  const coding = headers.get('transfer-encoding');
  if (coding !== undefined) {
    if (coding !== 'chunked') throw new Error(`coding: ${coding}`);
    return readChunks(bytes);
  }
  const length = headers.get('content-length') ?? '0';
  if (!/^(?:0|[1-9]\d*)$/.test(length)) throw new Error(`length: ${length}`);
  if (bytes.length < Number(length)) return undefined;
  return { body: bytes.slice(0, Number(length)), trailers: [], rest: bytes.slice(Number(length)) };
}

function readChunks(bytes: string): ReadBody | undefined {
  let body = '';
  let rest = bytes;
  for (;;) {
    const end = rest.indexOf('\r\n');
    if (end < 0) return undefined;
    const size = rest.slice(0, end);
    if (!/^(?:0|[1-9a-f][\da-f]*)$/i.test(size)) throw new Error(`chunk: ${JSON.stringify(size)}`);
    const length = Number.parseInt(size, 16);
    rest = rest.slice(end + 2);
    if (length === 0) break;
    if (rest.length < length + 2) return undefined;
    if (rest.slice(length, length + 2) !== '\r\n') throw new Error('a chunk that does not end');
    body += rest.slice(0, length);
    rest = rest.slice(length + 2);
  }
  const trailers: string[] = [];
  for (;;) {
    const end = rest.indexOf('\r\n');
    if (end < 0) return undefined;
    const line = rest.slice(0, end);
    rest = rest.slice(end + 2);
    if (line === '') return { body, trailers, rest };
    if (!headerLine.test(line)) throw new Error(`trailer: ${JSON.stringify(line)}`);
    trailers.push(line);
  }
}

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
