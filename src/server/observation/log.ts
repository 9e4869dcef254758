import sonicBoom from 'sonic-boom';
import type { RequestLine } from './request-line.ts';

export type LogLevel = 'info' | 'warn' | 'error';

/** What a line says besides time, level and event. Never a token, a proof, a cookie or a password. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Writes one line an event, off the path of the request. */
export interface Log {
  write(level: LogLevel, event: string, fields?: LogFields): void;
  /** Writes the line of a request that was answered. */
  writeRequest(line: RequestLine): void;
  /** Lines that could not be written, since nobody read them. */
  countDropped(): number;
  /** Resolves when all is written, or nobody reads it. */
  end(): Promise<void>;
}

/** Where and how lines are written. */
export interface LogOptions {
  readonly fd: number;
  readonly style: 'json' | 'pretty';
  /** Whether other processes write to the same place. Default: no. */
  readonly shared?: boolean;
}

/** How much may wait for a slow reader, in characters, before lines are dropped. */
const maxBuffered = 8 * 1024 * 1024;

/** Characters and milliseconds for which lines of requests wait for others. */
const batchLength = 64 * 1024;
const batchDelay = 50;
/** Lines of requests that wait for their text. */
const maxRequests = 64;
/** PIPE_BUF of Linux: so many bytes are written whole, or later. Of more, another process could write in the middle. */
const wholeBytes = 4096;
/** Milliseconds that the last lines may take. */
const maxFlush = 1000;

/** JSON lines; on a terminal, lines for people. */
export function createLog({ fd, style, shared = false }: LogOptions): Log {
  const maxBatch = shared ? wholeBytes : batchLength;
  // It would put small batches together again, counted in characters.
  const maxWrite = shared ? 1 : batchLength * 2;
  const destination = new sonicBoom.SonicBoom({ fd, sync: false, maxLength: maxBuffered, maxWrite });
  // A reader that went away must not take the service along; there is nobody left to tell.
  destination.on('error', () => {});
  let dropped = 0;
  // One drop is a batch of lines.
  destination.on('drop', (lines) => {
    dropped += String(lines).split('\n').length - 1;
  });
  const [format, formatRequest] =
    style === 'json' ? [formatJson, formatRequestJson] : [formatPretty, formatRequestPretty];
  // Lines of requests go out many at a time: each write is a system call on another thread.
  let batch = '';
  let batchSize = 0;
  let timer: NodeJS.Timeout | undefined;
  const send = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (batch !== '') destination.write(batch);
    batch = '';
    batchSize = 0;
  };
  const add = (line: string): void => {
    const size = shared ? Buffer.byteLength(line) : line.length;
    if (batchSize + size > maxBatch) send();
    batch += line;
    batchSize += size;
  };
  // Their texts are made many at a time as well: between two requests that would take longer.
  let requests: RequestLine[] = [];
  const addRequests = (): void => {
    const lines = requests;
    requests = [];
    for (const line of lines) add(formatRequest(line));
  };
  const sendAll = (): void => {
    addRequests();
    send();
  };
  return {
    write(level, event, fields) {
      addRequests();
      add(format({ time: Date.now(), level, event, fields }));
      send();
    },
    writeRequest(line) {
      requests.push(line);
      if (requests.length === maxRequests) addRequests();
      timer ??= setTimeout(sendAll, batchDelay);
    },
    countDropped: () => dropped,
    end() {
      sendAll();
      return new Promise((resolve) => {
        const timer = setTimeout(resolve, maxFlush);
        destination.flush(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    },
  };
}

/** What a line says, and when. */
interface Entry {
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly level: LogLevel;
  readonly event: string;
  readonly fields?: LogFields | undefined;
}

function formatJson({ time, level, event, fields }: Entry): string {
  return `${JSON.stringify({ time: formatTime(time), level, event, ...fields })}\n`;
}

/** As {@link formatJson} writes it; what has nothing to escape is put together by hand. */
function formatRequestJson(line: RequestLine): string {
  const { time, id, requestId, traceId, clientIp, method, route, routeKind, status, reason, wouldRefuse } = line;
  let text = `{"time":"${formatTime(time)}","level":"${levelOf(status)}","event":"request","id":"${id}"`;
  if (requestId !== undefined) text += `,"request_id":"${requestId}"`;
  if (traceId !== undefined) text += `,"trace_id":"${traceId}"`;
  if (clientIp !== undefined) text += `,"client_ip":"${clientIp}"`;
  text += `,"method":${method === 'GET' ? '"GET"' : JSON.stringify(method)},"${routeKind}":"${route}","status":${status}`;
  if (reason !== undefined) text += `,"reason":"${reason}"`;
  if (wouldRefuse !== undefined) text += `,"would_refuse":"${wouldRefuse}"`;
  const docs = anchorOf(reason ?? wouldRefuse);
  if (docs !== undefined) text += `,"docs":"${docs}"`;
  const facts = line.facts === undefined ? '{}' : JSON.stringify(line.facts);
  return `${text},"ms":${line.milliseconds}${facts === '{}' ? '' : `,${facts.slice(1, -1)}`}}\n`;
}

function formatRequestPretty(line: RequestLine): string {
  return formatPretty(describeLine(line));
}

function describeLine({ time, requestId, traceId, clientIp, milliseconds, facts, ...line }: RequestLine): Entry {
  const { id, method, route, routeKind, status, reason, wouldRefuse } = line;
  const fields = {
    id,
    request_id: requestId,
    trace_id: traceId,
    client_ip: clientIp,
    method,
    [routeKind]: route,
    status,
    reason,
    would_refuse: wouldRefuse,
    docs: anchorOf(reason ?? wouldRefuse),
    ms: milliseconds,
    ...facts,
  };
  return { time, level: levelOf(status), event: 'request', fields };
}

/** Where the documentation says what to do. */
function anchorOf(reason: string | undefined): string | undefined {
  return reason === undefined ? undefined : `refusals.md#${reason}`;
}

function levelOf(status: number): LogLevel {
  return status >= 500 ? 'error' : 'info';
}

let second = Number.NaN;
let secondText = '';

/** ISO 8601 in UTC. Many lines are of the same second, which is expensive to write. */
function formatTime(time: number): string {
  const milliseconds = time % 1000;
  if (time - milliseconds !== second) {
    second = time - milliseconds;
    secondText = new Date(second).toISOString().slice(0, 20);
  }
  return `${secondText}${milliseconds < 100 ? (milliseconds < 10 ? '00' : '0') : ''}${milliseconds}Z`;
}

const colours: Readonly<Record<LogLevel, string>> = { info: '\x1b[32m', warn: '\x1b[33m', error: '\x1b[31m' };

function formatPretty({ time: at, level, event, fields = {} }: Entry): string {
  const time = new Date(at).toISOString().slice(11, 23);
  const details = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `\x1b[2m${name}=\x1b[0m${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ');
  return `\x1b[2m${time}\x1b[0m ${colours[level]}${level}\x1b[0m ${event} ${details}\n`;
}
