import sonicBoom from 'sonic-boom';
import { limitTime } from '../../core/attempt.ts';
import { docsUrl } from '../../core/failures.ts';
import type { Exchange } from '../http/exchange.ts';
import { formatTime, writeMember, writePlain } from './audit/json-line.ts';

export type LogLevel = 'info' | 'warn' | 'error';

/** Settings of the log that a reload can change. */
export interface LogSelection {
  /** Lowest level of events. Above `info`, admitted requests are omitted too. */
  readonly logLevel: LogLevel;
  /** Admitted requests that are logged. */
  readonly logGrants: 'all' | 'none';
}

/** Fields in addition to time, level and event. Never a token, a proof, a cookie or a password. */
export type LogFields = Readonly<Record<string, unknown>>;

/** The line of one request. */
export interface RequestLine extends Pick<Exchange, 'id' | 'route' | 'routeKind' | 'reason' | 'wouldRefuse'> {
  /** Time of the response: milliseconds since the epoch. */
  readonly time: number;
  /** Value of X-Request-Id. */
  readonly requestId: string | undefined;
  readonly traceId: string | undefined;
  readonly clientIp: string | undefined;
  readonly method: string;
  readonly status: number;
  readonly milliseconds: number;
  /** The client, expected and received values, the cause. */
  readonly facts: Readonly<Record<string, unknown>> | undefined;
}

/**
 * Writes one line per event, asynchronously. Counts as dropped the lines that were lost because the reader was too slow or
 * closed. The end takes a second at most; later lines are lost.
 */
export type Log = ReturnType<typeof createLog>;

export interface LogOptions {
  readonly fd: number;
  readonly style: 'json' | 'pretty';
  /** Default: everything. */
  readonly selection?: LogSelection;
  /** True if other processes write to the descriptor. Default: false. */
  readonly shared?: boolean;
}

/** Characters that may wait for a slow reader before lines are dropped. */
const maxBuffered = 8 * 1024 * 1024;

/** Characters and milliseconds of one batch of lines. */
const batchLength = 64 * 1024;
const batchDelay = 50;
/** Lines of requests that wait to be formatted. */
const maxRequests = 64;
/** PIPE_BUF of Linux: larger writes to a pipe may interleave with writes of other processes. */
const atomicBytes = 4096;
/** Milliseconds after which a closed destination is tried again: a named pipe can get a new reader. */
const retryInterval = 1000;
/** Seconds that the last lines may take. */
const maxFlush = 1;

const everything: LogSelection = { logLevel: 'info', logGrants: 'all' };
const ranks: Readonly<Record<LogLevel, number>> = { info: 0, warn: 1, error: 2 };

/** JSON lines; on a terminal, lines for people. */
export function createLog({ fd, style, shared = false, selection = everything }: LogOptions) {
  const maxBatch = shared ? atomicBytes : batchLength;
  // Otherwise SonicBoom joins batches, counted in characters.
  const maxWrite = shared ? 1 : batchLength * 2;
  const destination = new sonicBoom.SonicBoom({ fd, sync: false, maxLength: maxBuffered, maxWrite });
  let dropped = 0;
  /** Lines that the destination has not confirmed. */
  let unconfirmed = 0;
  /** Time of the last error, in milliseconds; `undefined` while the destination accepts lines. */
  let failedAt: number | undefined;
  // A closed pipe must not end the service. Its lines are lost.
  destination.on('error', () => {
    failedAt = performance.now();
    dropped += unconfirmed;
    unconfirmed = 0;
  });
  destination.on('drain', () => {
    failedAt = undefined;
    unconfirmed = 0;
  });
  destination.on('drop', (lines) => {
    dropped += String(lines).split('\n').length - 1;
  });
  const format = style === 'json' ? formatJson : formatPretty;
  const formatRequest = style === 'json' ? formatRequestJson : (line: RequestLine) => format(parseRequestJson(line));
  let selected = selection;
  // Lines of requests are written in batches: each write is a system call on another thread.
  let batch = '';
  let batchSize = 0;
  let batchCount = 0;
  let timer: NodeJS.Timeout | undefined;
  /** The descriptor may belong to another file by now. */
  let hasEnded = false;
  const send = (): void => {
    clearTimeout(timer);
    timer = undefined;
    const isFailing = failedAt !== undefined && performance.now() - failedAt < retryInterval;
    if (hasEnded || isFailing) dropped += batchCount;
    else if (batch !== '') {
      unconfirmed += batchCount;
      destination.write(batch);
    }
    batch = '';
    batchSize = 0;
    batchCount = 0;
  };
  const add = (line: string): void => {
    const size = shared ? Buffer.byteLength(line) : line.length;
    if (batchSize + size > maxBatch) send();
    batch += line;
    batchSize += size;
    batchCount++;
  };
  // Formatting many lines together is faster than one between two requests.
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
    logsGrants: () => selected.logLevel === 'info' && selected.logGrants === 'all',
    select(next: LogSelection): void {
      selected = next;
    },
    write(level: LogLevel, event: string, fields?: LogFields): void {
      if (ranks[level] < ranks[selected.logLevel]) return;
      addRequests();
      add(format({ time: Date.now(), level, event, fields }));
      send();
    },
    writeRequest(line: RequestLine): void {
      requests.push(line);
      if (requests.length === maxRequests) addRequests();
      timer ??= setTimeout(sendAll, batchDelay);
    },
    countDropped: () => dropped,
    async end(): Promise<void> {
      sendAll();
      await limitTime(new Promise<void>((resolve) => destination.flush(() => resolve())), maxFlush, () => undefined);
      hasEnded = true;
    },
  };
}

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

/** Like {@link formatJson}, without an object; only `method` and `facts` may need an escape. */
function formatRequestJson(line: RequestLine): string {
  const { time, id, requestId, traceId, clientIp, method, route, routeKind, status, reason, wouldRefuse } = line;
  const named = reason ?? wouldRefuse;
  const docs = named === undefined ? '' : `,"docs":"${docsUrl}refusals.md#${named}"`;
  const facts = line.facts === undefined ? '{}' : JSON.stringify(line.facts);
  return (
    `{"time":"${formatTime(time)}","level":"${status >= 500 ? 'error' : 'info'}","event":"request"` +
    `${writePlain('id', id)}${writePlain('request_id', requestId)}${writePlain('trace_id', traceId)}` +
    `${writePlain('client_ip', clientIp)}${method === 'GET' ? ',"method":"GET"' : writeMember('method', method)}${writePlain(routeKind, route)}` +
    `,"status":${status}${writePlain('reason', reason)}${writePlain('would_refuse', wouldRefuse)}${docs}` +
    `,"ms":${line.milliseconds}${facts === '{}' ? '' : `,${facts.slice(1, -1)}`}}\n`
  );
}

/** Returns the members of the JSON line, for another format. */
function parseRequestJson(line: RequestLine): Entry {
  const { time: _time, level, event, ...fields } = JSON.parse(formatRequestJson(line)) as Entry & LogFields; // as just written
  return { time: line.time, level, event, fields };
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
