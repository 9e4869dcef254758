import { closeSync, fstatSync, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommandFailure, requireValid } from '../../src/cli/commands/failure.ts';
import { createOpenConsole } from '../../src/console/server/open-console.ts';
import { openTries } from '../../src/dev/tries/tries.ts';
import { createGateCommand } from '../../src/gate/gate-service.ts';
import { readGateSettings } from '../../src/gate/gate-settings.ts';
import { RulesError } from '../../src/gate/match/rules.ts';
import { serveCommand } from '../../src/serve/service.ts';
import { exitCodes, StartFailure } from '../../src/server/lifecycle/exit.ts';
import { runReload } from '../../src/server/lifecycle/reload.ts';
import { createLog } from '../../src/server/observation/log.ts';
import { run } from '../../src/server/process/run.ts';
import type { RunOptions } from '../../src/server/process/service.ts';
import { requireSettings, warnOfSettings } from '../../src/server/settings/running-settings.ts';
import { readSettings } from '../../src/server/settings/settings.ts';
import {
  type LogLine,
  type ServiceProcess,
  type ServiceProcessOptions,
  ServiceStartError,
  startService,
} from './service-process.ts';
import { trustedCaFile } from './tls.ts';

/** A service on loopback, in the process of the test. */
export interface OpenedService extends Pick<ServiceProcess, 'url' | 'adminUrl' | 'port' | 'logs' | 'findLog' | 'stop'> {
  /** Reloads the settings, as a process does when it receives the signal. */
  signal(name: 'SIGHUP'): void;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** True if a service with these settings changes the process, or needs what only the start of a process sets. */
function needsProcess({ environment = {}, runtime }: ServiceProcessOptions): boolean {
  const { NODE_EXTRA_CA_CERTS: ca, WORKERS, ...others } = environment;
  const isOther = ca !== undefined && ca !== trustedCaFile();
  return (
    isOther ||
    runtime !== undefined ||
    WORKERS !== undefined ||
    Object.keys(others).some((name) => /^(?:NODE|OTEL)_/.test(name))
  );
}

/**
 * Opens `portcullis serve` or `portcullis gate` in this process and waits until it listens, or in its own process if the
 * settings need one. Rejects if it cannot start.
 */
export async function openService(options: ServiceProcessOptions = {}): Promise<OpenedService> {
  if (needsProcess(options)) return startService(options);
  const { command: name = 'serve', args = [] } = options;
  const environment: Environment = { HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: '0', ...options.environment };
  const given = { args, environment };
  const [result, command, readAgain] = orStartError(() =>
    name === 'gate' ? openGate(() => readGateSettings(given)) : openServe(() => readSettings(given)),
  );
  const { settings } = result;
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-log-'));
  const file = openSync(join(folder, 'log'), 'w+');
  const log = createLog({ fd: file, style: 'json', selection: settings });
  warnOfSettings(result, name, log);

  const reloads = new Set<() => void | Promise<void>>();
  let stop = (): void => undefined;
  const requested = new Promise<void>((resolve) => {
    stop = resolve;
  });
  const lines = createLineReader(file);
  let hasEnded = false;
  let ended: Promise<number> | undefined;
  const announced = new Promise<readonly [url: string, adminUrl: string | undefined]>((resolve, reject) => {
    ended = run({
      ...{ settings, environment, log, command, readAgain },
      openConsole: createOpenConsole(openTries(environment)),
      door: {
        shutdown: { requested, abandoned: new Promise(() => undefined) },
        reloads: { add: (reload) => void reloads.add(reload) },
        announce: (...urls) => resolve(urls),
      },
    }).finally(async () => {
      await log.end();
      lines.read();
      hasEnded = true;
      closeSync(file);
      rmSync(folder, { recursive: true });
    });
    ended.catch(reject);
  });
  const [url, adminUrl] = await announced.catch((error: unknown) => {
    throw toStartError(error, lines.all);
  });

  return {
    ...{ url, adminUrl, port: Number(new URL(url).port) },
    get logs() {
      return hasEnded ? lines.all : lines.read();
    },
    async findLog(matches) {
      for (let read = 0; ; ) {
        const isLast = hasEnded;
        const all = isLast ? lines.all : lines.read();
        for (; read < all.length; read++) if (matches(all[read] as LogLine)) return all[read] as LogLine; // below its length
        if (isLast) throw new Error('The service ended and has written no such line.');
        await sleep(5);
      }
    },
    signal() {
      for (const reload of reloads) void runReload(reload, log);
    },
    async stop() {
      stop();
      return (await ended) ?? null;
    },
  };
}

/** The error of a process that could not start: commands print the message, and end with the status. */
function toStartError(error: unknown, logs: readonly LogLine[]): unknown {
  if (!(error instanceof StartFailure || error instanceof CommandFailure || error instanceof RulesError)) return error;
  const code = 'exitCode' in error ? error.exitCode : exitCodes.config;
  return new ServiceStartError({ code, signal: null }, { stderr: error.message, logs });
}

function orStartError<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw toStartError(error, []);
  }
}

type Opened = readonly [
  result: Parameters<typeof warnOfSettings>[0],
  command: RunOptions['command'],
  readAgain: RunOptions['readAgain'],
];

function openServe(read: () => ReturnType<typeof readSettings>): Opened {
  return [requireValid(read()), serveCommand, () => requireSettings(read())];
}

function openGate(read: () => ReturnType<typeof readGateSettings>): Opened {
  const result = requireValid(read());
  return [result, createGateCommand(result), () => requireSettings(read())];
}

/** Reads the complete lines of a log file, each once. Every line must be JSON (docs/behaviour.md §8). */
function createLineReader(file: number) {
  const all: LogLine[] = [];
  let position = 0;
  return {
    all,
    read(): readonly LogLine[] {
      const bytes = Buffer.alloc(Math.max(0, fstatSync(file).size - position));
      const text = bytes.toString('utf8', 0, readSync(file, bytes, 0, bytes.length, position));
      const complete = text.slice(0, text.lastIndexOf('\n') + 1);
      position += Buffer.byteLength(complete);
      for (const line of complete.split('\n')) if (line !== '') all.push(JSON.parse(line) as LogLine); // the log writes this shape
      return all;
    },
  };
}
