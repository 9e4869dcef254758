import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const entry = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const hostFile = fileURLToPath(new URL('./command-host.js', import.meta.url));

/** Output and exit status of a command. */
export interface CommandEnd {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** A cache folder without the state of a developer's own runs. */
const base = { PATH: process.env['PATH'], XDG_CACHE_HOME: join(tmpdir(), 'portcullis-without-dev') };

/** Runs a command of the build in a new process, which inherits only `PATH`. */
export function runProcess(args: readonly string[], environment: Environment, input = ''): Promise<CommandEnd> {
  const child = spawn(process.execPath, [entry, ...args], { env: { ...base, ...environment } });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdin.on('error', () => undefined); // a command that reads nothing may have ended
  child.stdin.end(input);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (status) => resolve({ status, stdout, stderr }));
  });
}

/** A process that runs commands, and the end of its last run. */
interface Host {
  readonly child: ChildProcess;
  /** Rejects when the process has ended. */
  readonly gone: Promise<never>;
  last: Promise<unknown>;
}

/** Hosts by the options that Node reads only at startup; the last used one is last. */
const hosts = new Map<string, Host>();
const maxHosts = 3;

/**
 * Runs a command of the build like `runProcess`, but in a shared process, because a new process costs more than the
 * command. At least one test of each command uses a new process.
 */
export function runCommand(args: readonly string[], environment: Environment, input = ''): Promise<CommandEnd> {
  const given = JSON.parse(JSON.stringify({ ...base, ...environment })) as Record<string, string>; // without what is undefined
  const host = takeHost(given);
  const end = host.last.then(async (): Promise<CommandEnd> => {
    const answered = once(host.child, 'message');
    host.child.send({ args, environment: given, input });
    return (await Promise.race([answered, host.gone]))[0];
  });
  host.last = end.catch(() => undefined);
  return end;
}

function takeHost(environment: Readonly<Record<string, string>>): Host {
  const atStart = Object.fromEntries(Object.entries(environment).filter(([name]) => name.startsWith('NODE_')));
  const key = JSON.stringify(atStart);
  const host = hosts.get(key) ?? startHost(atStart);
  hosts.delete(key);
  hosts.set(key, host);
  for (const [oldest, { child, last }] of hosts) {
    if (hosts.size <= maxHosts) break;
    hosts.delete(oldest);
    void last.then(() => child.disconnect());
  }
  return host;
}

function startHost(environment: Readonly<Record<string, string>>): Host {
  const child = fork(hostFile, { env: environment, execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  // It ends with the channel, when this process does.
  child.unref();
  child.channel?.unref();
  const gone = once(child, 'exit').then((): never => {
    throw new Error('The process that runs commands has ended.');
  });
  gone.catch(() => undefined); // a pending run gets the error
  return { child, gone, last: Promise.resolve() };
}
