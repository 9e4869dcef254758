/** One request as the strictest reader sees it. */
export interface StrictRequest {
  readonly line: string;
  /** Lines in their order. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  readonly trailers: readonly string[];
}

/** What a connection has brought so far. */
export interface StrictReading {
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
export function readStrictly(bytes: string): StrictReading {
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
