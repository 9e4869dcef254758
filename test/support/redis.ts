import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from '../../tools/shared/network.js';
import { requireProgram } from './programs.ts';

/** A real Redis on a loopback port, without persistence. */
export interface TestRedis {
  readonly port: number;
  /** `redis://` with the password, if it has one. */
  readonly url: string;
  /** Kills it at once, as a crash would. */
  kill(): Promise<void>;
  /** Starts it again on the same port, empty. */
  restart(): Promise<void>;
  /** Suspends its process; connections stay open without replies. */
  freeze(): void;
  thaw(): void;
  /** Runs one command on a new connection and returns the raw reply. */
  command(...words: readonly string[]): Promise<string>;
  /** Kills it and removes its folder. */
  stop(): Promise<void>;
}

/** Options of a test Redis. */
export interface TestRedisOptions {
  readonly password?: string;
  /** Further flags of the command line. */
  readonly flags?: readonly string[];
}

/** Starts Redis; rejects where it does not come up within 10 s. */
export async function startTestRedis(options: TestRedisOptions = {}): Promise<TestRedis> {
  const { password, flags: more = [] } = options;
  const program = requireProgram('redis-server');
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-redis-'));
  const port = await findFreePort();
  const auth = password === undefined ? [] : ['--requirepass', password];
  const flags = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'no'];
  let process = await launch();

  async function launch(): Promise<ChildProcess> {
    const child = spawn(program, [...flags, ...auth, ...more], { stdio: 'ignore' });
    for (const deadline = Date.now() + 10_000; Date.now() < deadline; await sleep(20)) {
      if (child.exitCode !== null) break;
      const answer = await send(port, inline(password, ['PING'])).catch(() => '');
      if (answer.includes('+PONG')) return child;
    }
    child.kill('SIGKILL');
    throw new Error('Redis did not start');
  }

  const kill = async (): Promise<void> => {
    if (process.exitCode !== null || process.signalCode !== null) return;
    const exited = once(process, 'exit');
    process.kill('SIGKILL');
    await exited;
  };

  return {
    port,
    url: `redis://${password === undefined ? '' : `:${encodeURIComponent(password)}@`}127.0.0.1:${port}`,
    kill,
    async restart() {
      await kill();
      process = await launch();
    },
    freeze: () => {
      process.kill('SIGSTOP');
    },
    thaw: () => {
      process.kill('SIGCONT');
    },
    command: (...words) => send(port, inline(password, words)),
    async stop() {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Adds a user with the commands that a page of the documentation names after `its user needs`, on some keys. Returns its URL. */
export async function addDocumentedUser({ url, command }: TestRedis, page: string, keys: string): Promise<string> {
  const [, names = ''] = /its user needs\s+([A-Z,\s]+and [A-Z]+)/.exec(readFileSync(page, 'utf8')) ?? [];
  const commands = names.match(/[A-Z]{3,}/g) ?? [];
  const rules = ['on', '>limited', `~${keys}`, `&${keys}`, ...commands.map((name) => `+${name.toLowerCase()}`)];
  if (!(await command('ACL', 'SETUSER', 'limited', ...rules)).startsWith('+OK')) throw new Error('no user was added');
  return url.replace('//', '//limited:limited@');
}

/** Inline commands: authentication, the command, and QUIT, which ends the connection. */
function inline(password: string | undefined, words: readonly string[]): string {
  const auth = password === undefined ? '' : `AUTH ${password}\r\n`;
  return `${auth}${words.join(' ')}\r\nQUIT\r\n`;
}

async function send(port: number, text: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.setEncoding('latin1');
  socket.write(text);
  let answer = '';
  for await (const chunk of socket) answer += String(chunk);
  return answer;
}
