import sonicBoom from 'sonic-boom';

export type LogLevel = 'info' | 'warn' | 'error';

/** What a line says besides time, level and event. Never a token, a proof, a cookie or a password. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Writes one line an event, off the path of the request. */
export interface Log {
  write(level: LogLevel, event: string, fields?: LogFields): void;
  /** Writes what is buffered, at once. */
  flush(): void;
}

/** How much may wait for a slow reader, in characters, before lines are dropped. */
const maxBuffered = 8 * 1024 * 1024;

/** JSON lines; on a terminal, lines for people. */
export function createLog({ fd, style }: { readonly fd: number; readonly style: 'json' | 'pretty' }): Log {
  const destination = new sonicBoom.SonicBoom({ fd, sync: false, maxLength: maxBuffered });
  // A reader that went away must not take the service along; there is nobody left to tell.
  destination.on('error', () => {});
  const format = style === 'json' ? formatJson : formatPretty;
  return {
    write(level, event, fields) {
      destination.write(format(level, event, fields));
    },
    flush() {
      try {
        destination.flushSync();
      } catch {
        // the destination is gone or not open yet: as above
      }
    },
  };
}

function formatJson(level: LogLevel, event: string, fields: LogFields | undefined): string {
  return `${JSON.stringify({ time: new Date().toISOString(), level, event, ...fields })}\n`;
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
