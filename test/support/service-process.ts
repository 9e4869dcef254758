import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { until } from '../../tools/shared/network.js';

/** One JSON line of the service's log. */
export interface LogLine {
  readonly time: string;
  readonly level: string;
  readonly event: string;
  readonly [field: string]: unknown;
}

/** The end of a process: its exit code, or `null` and the signal. */
export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Options of the service. */
export interface ServiceProcessOptions {
  /**
   * Added to `HOST=127.0.0.1`, `PORT=0` and `ADMIN_PORT=0`; a member that is `undefined` is not set at all. Nothing
   * but `PATH` is inherited.
   */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Default `serve`. */
  readonly command?: 'serve' | 'gate';
  /** Follow the command on the command line. */
  readonly args?: readonly string[];
  /** Program and arguments that run the service. Default: this Node. */
  readonly runtime?: readonly string[];
}

/** The service in its own process, on loopback. */
export type ServiceProcess = Awaited<ReturnType<typeof startService>>;

/** The service ended before it listened. */
export class ServiceStartError extends Error {
  override readonly name = 'ServiceStartError';
  readonly end: ProcessEnd;
  readonly stderr: string;
  readonly logs: readonly LogLine[];

  constructor(end: ProcessEnd, output: { readonly stderr: string; readonly logs: readonly LogLine[] }) {
    super(`The service ended with ${end.code ?? end.signal} before it listened.\n${output.stderr}`);
    this.end = end;
    this.stderr = output.stderr;
    this.logs = output.logs;
  }
}

const entry = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

const { OVERWRITE_BUFFERS: overwrites } = process.env;
const preload = new URL('../isolation/overwritten-buffers.js', import.meta.url).href;

/** The command of this Node. */
export const [runtime, ...runtimeArgs] = [
  process.execPath,
  ...(overwrites === undefined ? [] : [`--import=${preload}`]),
] as [string, ...string[]];

/**
 * Starts `portcullis serve` from `dist` and waits until it listens. Rejects with `ServiceStartError` if it exits first;
 * throws without a build.
 */
export async function startService(options: ServiceProcessOptions = {}) {
  if (!existsSync(entry)) throw new Error('There is no build to test: run "npm run build" first.');
  const { environment = {}, command = 'serve', args = [] } = options;
  const [program = '', ...words] = options.runtime ?? [runtime, ...runtimeArgs];
  const child = spawn(program, [...words, entry, command, ...args], {
    env: { PATH: process.env['PATH'], HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: '0', ...environment },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const ended = superviseChild(child);
  const logs: LogLine[] = [];
  const waiting = new Set<(line: LogLine) => void>();
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  // Every line must be JSON (docs/behaviour.md §8); another line fails the test run.
  readLines(child, (text) => {
    const line = JSON.parse(text) as LogLine; // the log writes this shape
    logs.push(line);
    for (const look of waiting) look(line);
  });

  // The first message has this one shape; JSON leaves out an adminUrl that is undefined.
  const message = once(child, 'message') as Promise<[{ readonly url: string; readonly adminUrl?: string }]>;
  const announced = await Promise.race([message, ended]);
  if (!Array.isArray(announced)) throw new ServiceStartError(announced, { stderr, logs });
  const [{ url, adminUrl }] = announced;

  /** Resolves with the first line that matches, written already or yet to come. Rejects where the process ends first. */
  const findLog = (matches: (line: LogLine) => boolean): Promise<LogLine> => {
    const known = logs.find(matches);
    if (known !== undefined) return Promise.resolve(known);
    return new Promise((resolve, reject) => {
      const look = (line: LogLine): void => {
        if (!matches(line)) return;
        waiting.delete(look);
        resolve(line);
      };
      waiting.add(look);
      void ended.then(() => reject(new Error('The service ended and has written no such line.')));
    });
  };

  return {
    /** URL of the API: `http://127.0.0.1:<port>`. */
    url,
    /** URL of the admin listener; `undefined` if it is off. */
    adminUrl,
    port: Number(new URL(url).port),
    pid: child.pid ?? 0, // it has announced itself, so it was spawned
    /** Log lines so far, oldest first; the array grows. A line is written shortly after its response. */
    logs: logs as readonly LogLine[],
    /** Output on stderr so far. */
    get stderr() {
      return stderr;
    },
    /** Settles when the process has ended and all of its output was read. */
    ended,
    findLog,
    /** Sends a signal and does not wait. */
    signal: (name: NodeJS.Signals) => void child.kill(name),
    /** Sends SIGTERM and resolves with the exit code, `null` where a signal ended it; also after its end. */
    async stop() {
      child.kill('SIGTERM');
      return (await ended).code;
    },
    /** Sends SIGKILL and waits for the end. */
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Watches a child: ends it with this process; settles when it has ended and its output is read. */
export function superviseChild(child: ChildProcess): Promise<ProcessEnd> {
  // Killed outright, it could not end its own children, such as the workers of nginx.
  const end = (): void => void child.kill('SIGTERM');
  process.once('exit', end);
  // A process that is killed can reset its pipes. What it has written is read.
  for (const pipe of [child.stdout, child.stderr]) pipe?.on('error', () => undefined);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      process.off('exit', end);
      resolve({ code, signal });
    });
  });
}

/** Reads complete lines. The last one may be cut: a process that ends waits for a late reader only so long. */
function readLines(child: ChildProcess, onLine: (text: string) => void): void {
  let rest = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line);
  });
}

/** Waits until the service can validate tokens. */
export const awaitReady = ({ adminUrl }: Pick<ServiceProcess, 'adminUrl'>): Promise<void> =>
  until(async () => (await fetch(`${adminUrl}/readyz`)).ok, 'The service did not become ready.');
