import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { attempt } from '../../core/attempt.ts';
import { createHttpClient, type FetchResponse } from '../../core/outbound/http-client.ts';
import { readBytes } from '../../core/outbound/outbound.ts';
import { findCacheFolder } from '../../dev/provider/cache-folder.ts';
import { consoleKeyPrefix } from '../../dev/provider/defaults.ts';
import { findRunning } from '../../dev/provider/running.ts';
import type { DecisionDetail, StreamedDecisions } from '../../server/console/wire.ts';
import { readSettings, unused } from '../../server/settings/settings.ts';
import { UsageError } from '../commands/failure.ts';

type Environment = Readonly<NodeJS.ProcessEnv>;

/** Console of a running service. Default: of the running dev. */
export interface ConsoleAddress {
  readonly admin: string | undefined;
  /** File with the key of the console. Default: the file of the settings, or of the running dev. */
  readonly keyFile: string | undefined;
  /** Flags of settings. */
  readonly settings: readonly string[];
}

/** `recent`: decisions before the start of the stream. */
export interface ConsoleEvent {
  readonly type: 'recent' | 'decisions';
  readonly streamed: StreamedDecisions;
}

export type ConsoleClient = Awaited<ReturnType<typeof openConsoleClient>>;

const keyForm = /^[\w-]{20,64}$/;
/** Milliseconds for one response. */
const timeout = 5000;
const maxBytes = 1024 * 1024;
/** The console is on this host. `watch` reads details while its stream is open. */
const client = createHttpClient({ environment: {} }, 2);

/** Reads decisions of a running service. Methods reject with `UsageError` if the console refuses or does not respond. */
export async function openConsoleClient(address: ConsoleAddress, environment: Environment) {
  const url = readAdmin(address.admin ?? (await findAdmin(address, environment)));
  const open = async (path: string, signal: AbortSignal): Promise<FetchResponse> => {
    // Read again, because a restarted service has another key.
    const keys = findKeys(environment, address.keyFile);
    if (keys.length === 0) {
      throw new UsageError(
        'admin: there is no key. Add --console-key-file with the file that the service writes it to.',
      );
    }
    for (const key of keys) {
      const response = await get(new URL(path, url), key, signal);
      if (response.status !== 401) return response;
      await readBytes(response.body, { maxBytes });
    }
    throw new UsageError('admin: the console refuses the key. CONSOLE_KEY_FILE must name the file of this service.');
  };
  return {
    origin: url.origin,
    async findDecision(id: string): Promise<DecisionDetail | undefined> {
      const response = await open(`/console/api/decisions/${id}`, AbortSignal.timeout(timeout));
      const body = String(await readBytes(response.body, { maxBytes }));
      if (response.status === 404 && body.includes('no longer has')) return undefined;
      requireConsole(response);
      return JSON.parse(body) as DecisionDetail; // the service writes this shape
    },
    /** Opens the stream of decisions. It ends with the signal or the service. */
    async openEvents(signal: AbortSignal) {
      const response = await open('/console/api/events', signal);
      requireConsole(response);
      return readEvents(response.body as AsyncIterable<Uint8Array>); // of the built-in client
    },
  };
}

/** Reads an event stream to its end, which the signal or the service causes. */
async function* readEvents(chunks: AsyncIterable<Uint8Array>): AsyncIterable<ConsoleEvent> {
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const chunk of chunks) {
      const parts = (text + decoder.decode(chunk, { stream: true })).split('\n\n');
      text = parts.pop() ?? '';
      for (const part of parts) {
        const [, type, data = ''] = /^event: (recent|decisions)\ndata: (.*)$/.exec(part) ?? [];
        if (type !== undefined) yield { type, streamed: JSON.parse(data) } as ConsoleEvent; // the service writes this shape
      }
    }
  } catch {
    // The connection was closed.
  }
}

function requireConsole({ status }: FetchResponse): void {
  if (status === 404) throw new UsageError('admin: there is no console. Start the service with CONSOLE=on.');
  if (status !== 200) throw new UsageError(`admin: the console responds with ${status}.`);
}

async function get({ href }: URL, key: string, signal: AbortSignal): Promise<FetchResponse> {
  const headers = { authorization: `Bearer ${key}` };
  try {
    return await client.fetch(href, { method: 'GET', headers, redirect: 'manual', signal });
  } catch {
    throw new UsageError('admin: no response. Name the admin listener of a running service.');
  }
}

async function findAdmin({ keyFile, settings: args }: ConsoleAddress, environment: Environment): Promise<string> {
  if (keyFile !== undefined) {
    const read = readSettings({ args, environment, defaults: unused });
    if (read.kind === 'settings') return `http://127.0.0.1:${read.settings.adminPort}`;
    throw new UsageError('admin: the settings are not valid, so the port is unknown. Add --admin URL.');
  }
  const local = await findRunning(findCacheFolder(environment));
  if (local?.admin !== undefined) return local.admin;
  throw new UsageError('admin: no running portcullis dev was found. Add --admin URL of a service.');
}

/** The key must not leave this host. */
function readAdmin(admin: string): URL {
  const url = URL.canParse(admin) ? new URL(admin) : undefined;
  if (url?.protocol === 'http:' && /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(url.hostname)) return url;
  throw new UsageError('admin: write the URL of the admin listener on this host, as in http://127.0.0.1:9464.');
}

/** Reads the keys of the named file, or of every `dev` of this user. */
function findKeys(environment: Environment, keyFile: string | undefined): readonly string[] {
  const folder = findCacheFolder(environment);
  const named = keyFile ?? environment['CONSOLE_KEY_FILE'];
  const ofDev = (): readonly string[] => readdirSync(folder).filter((name) => name.startsWith(consoleKeyPrefix));
  const files = named ? [named] : (attempt(ofDev) ?? []).map((name) => join(folder, name));
  const keys = files.map((file) => attempt(readFileSync, file)?.toString().trim() ?? '');
  return keys.filter((key) => keyForm.test(key));
}
