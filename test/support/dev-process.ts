import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { superviseChild } from './service-process.ts';

/** `portcullis dev` in its own process and with its own cache folder. */
export interface DevProcess {
  /** URL of the service or the gate. */
  readonly url: string;
  readonly adminUrl: string;
  /** The output until it was ready. */
  readonly output: string;
  /** For commands that look for its provider. */
  readonly environment: Readonly<Record<string, string>>;
  /** The address of the console with the key that is in force. */
  consoleLink(): Promise<string>;
  stop(): Promise<void>;
}

const entry = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** Starts it on free ports, and waits until it is ready. */
export async function startDev(
  args: readonly string[] = [],
  environment: Readonly<Record<string, string>> = {},
): Promise<DevProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-dev-'));
  const base = { PATH: process.env['PATH'] ?? '', XDG_CACHE_HOME: folder, HOME: folder };
  const child = spawn(process.execPath, [entry, 'dev', '--port', '0', '--idp-port', '0', ...args], {
    env: { ...base, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = superviseChild(child);
  let output = '';
  const ready = new Promise<void>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
      if (output.includes('Stop with Ctrl-C.') && output.endsWith('\n')) resolve();
    });
  });
  const end = await Promise.race([ready, ended]);
  if (end !== undefined) throw new Error(`dev has ended before it was ready:\n${output}`);
  const read = (name: string): string => new RegExp(`^${name} +(\\S+)`, 'm').exec(output)?.[1] ?? '';
  const [, file = '', page = ''] =
    /^ {2}console key +(\S+)[\s\S]*^\S+ "(\S+)\?key=\$\(cat '\S+'\)"$/m.exec(output) ?? [];
  return {
    url: read('Service') || read('Gate'),
    adminUrl: read('Admin'),
    output,
    environment: base,
    consoleLink: async () => `${page}?key=${(await readFile(file, 'utf8')).trim()}`,
    async stop() {
      child.kill('SIGTERM');
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
