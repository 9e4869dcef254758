import { readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { makeFolder } from '../../tools/shared/folder.js';
import { endChild, startChild } from '../../tools/shared/processes.js';

/** `portcullis dev` in its own process and with its own cache folder. */
export type DevProcess = Awaited<ReturnType<typeof startDev>>;

const entry = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** Starts it on free ports, and waits until it is ready. */
export async function startDev(args: readonly string[] = [], environment: Readonly<Record<string, string>> = {}) {
  const folder = makeFolder('dev');
  const base: Readonly<Record<string, string>> = {
    PATH: process.env['PATH'] ?? '',
    XDG_CACHE_HOME: folder,
    HOME: folder,
  };
  const running = startChild([process.execPath, entry, 'dev', '--port', '0', '--idp-port', '0', ...args], {
    env: { ...base, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  const ready = new Promise<void>((resolve) => {
    running.child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
      if (output.includes('Stop with Ctrl-C.') && output.endsWith('\n')) resolve();
    });
  });
  await running.orEnd(ready, 'dev').catch((cause: unknown) => {
    throw new Error(`dev has ended before it was ready:\n${output}`, { cause });
  });
  const read = (name: string): string => new RegExp(`^${name} +(\\S+)`, 'm').exec(output)?.[1] ?? '';
  const [, file = '', page = ''] =
    /^ {2}console key +(\S+)[\s\S]*^\S+ "(\S+)\?key=\$\(cat '\S+'\)"$/m.exec(output) ?? [];
  return {
    /** URL of the service or the gate. */
    url: read('Service') || read('Gate'),
    adminUrl: read('Admin'),
    /** The output until it was ready. */
    output,
    /** For commands that look for its provider. */
    environment: base,
    /** Returns the address of the console with the current key. */
    consoleLink: () => `${page}?key=${readFileSync(file, 'utf8').trim()}`,
    async stop() {
      await endChild(running);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
