import sonicBoom from 'sonic-boom';
import type { Exchange } from '../app/exchange.ts';

export type LogLevel = 'info' | 'warn' | 'error';

/** What a line says besides time, level and event. Never a token, a proof, a cookie or a password. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Writes one line an event, off the path of the request. */
export interface Log {
  write(level: LogLevel, event: string, fields?: LogFields): void;
  /** Writes the line of a request that was answered. */
  writeRequest(exchange: Exchange, status: number, milliseconds: number): void;
  /** Resolves when all is written, or nobody reads it. */
  end(): Promise<void>;
}

/** How much may wait for a slow reader, in characters, before lines are dropped. */
const maxBuffered = 8 * 1024 * 1024;

/** Characters and milliseconds for which lines of requests wait for others. */
const batchLength = 64 * 1024;
const batchDelay = 50;
/** Milliseconds that the last lines may take. */
const maxFlush = 1000;

/** JSON lines; on a terminal, lines for people. */
export function createLog({ fd, style }: { readonly fd: number; readonly style: 'json' | 'pretty' }): Log {
  const destination = new sonicBoom.SonicBoom({ fd, sync: false, maxLength: maxBuffered, maxWrite: batchLength * 2 });
  // A reader that went away must not take the service along; there is nobody left to tell.
  destination.on('error', () => {});
  const [format, formatRequest] =
    style === 'json' ? [formatJson, formatRequestJson] : [formatPretty, formatRequestPretty];
  // Lines of requests go out many at a time: each write is a system call on another thread.
  let batch = '';
  let timer: NodeJS.Timeout | undefined;
  const send = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (batch !== '') destination.write(batch);
    batch = '';
  };
  return {
    write(level, event, fields) {
      batch += format(level, event, fields);
      send();
    },
    writeRequest(exchange, status, milliseconds) {
      batch += formatRequest(exchange, status, Math.round(milliseconds * 1000) / 1000);
      if (batch.length >= batchLength) send();
      else timer ??= setTimeout(send, batchDelay);
    },
    end() {
      send();
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

function formatJson(level: LogLevel, event: string, fields: LogFields | undefined): string {
  return `${JSON.stringify({ time: formatTime(Date.now()), level, event, ...fields })}\n`;
}

/** The fields of a request's line, besides its time. */
function describeRequest(exchange: Exchange, status: number, milliseconds: number): LogFields {
  const { id, request, route, reason, context, cause } = exchange;
  return {
    id,
    method: request.method,
    route,
    status,
    reason,
    ms: milliseconds,
    ...context,
    ...(cause !== undefined && { cause: describeCause(cause) }),
  };
}

/** As {@link formatJson} writes it; the usual line, which has nothing to escape, is put together by hand. */
function formatRequestJson(exchange: Exchange, status: number, milliseconds: number): string {
  const { id, request, route, reason, context, cause } = exchange;
  if (context !== undefined || cause !== undefined || status >= 500) {
    return formatJson(levelOf(status), 'request', describeRequest(exchange, status, milliseconds));
  }
  const method = request.method === 'GET' ? '"GET"' : JSON.stringify(request.method);
  const why = reason === undefined ? '' : `,"reason":"${reason}"`;
  return `{"time":"${formatTime(Date.now())}","level":"info","event":"request","id":"${id}","method":${method},"route":"${route}","status":${status}${why},"ms":${milliseconds}}\n`;
}

function formatRequestPretty(exchange: Exchange, status: number, milliseconds: number): string {
  return formatPretty(levelOf(status), 'request', describeRequest(exchange, status, milliseconds));
}

function levelOf(status: number): LogLevel {
  return status >= 500 ? 'error' : 'info';
}

/** The name and message of an error of this program's own making; never of input. */
function describeCause(cause: unknown): string {
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : 'not an error';
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

function formatPretty(level: LogLevel, event: string, fields: LogFields = {}): string {
  const time = new Date().toISOString().slice(11, 23);
  const details = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `\x1b[2m${name}=\x1b[0m${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ');
  return `\x1b[2m${time}\x1b[0m ${colours[level]}${level}\x1b[0m ${event} ${details}\n`;
}
