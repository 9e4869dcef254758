import { readdirSync, readFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { findCacheFolder } from '../../dev/provider/cache-folder.ts';
import { consoleKeyPrefix } from '../../dev/provider/defaults.ts';
import { findLocalProvider } from '../../dev/provider/running.ts';
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

/** Reads decisions of a running service. Its methods reject with a `UsageError` if the console refuses or does not respond. */
export interface ConsoleClient {
  readonly origin: string;
  findDecision(id: string): Promise<DecisionDetail | undefined>;
  /** Opens the stream of decisions. It ends with the signal or the service. */
  openEvents(signal: AbortSignal): Promise<AsyncIterable<ConsoleEvent>>;
}

const keyForm = /^[\w-]{20,64}$/;
/** Milliseconds for one response. */
const timeout = 5000;

export async function openConsoleClient(address: ConsoleAddress, environment: Environment): Promise<ConsoleClient> {
  const url = readAdmin(address.admin ?? (await findAdmin(address, environment)));
  const open = async (path: string, signal: AbortSignal): Promise<IncomingMessage> => {
    // Read again, because a restarted service has another key.
    const keys = findKeys(environment, address.keyFile);
    if (keys.length === 0) {
      throw new UsageError(
        'admin: there is no key. Add --console-key-file with the file that the service writes it to.',
      );
    }
    for (const key of keys) {
      const response = await get(new URL(path, url), key, signal);
      if (response.statusCode !== 401) return response;
      response.resume();
    }
    throw new UsageError('admin: the console refuses the key. CONSOLE_KEY_FILE must name the file of this service.');
  };
  return {
    origin: url.origin,
    async findDecision(id) {
      const response = await open(`/console/api/decisions/${id}`, AbortSignal.timeout(timeout));
      const body = await text(response);
      if (response.statusCode === 404 && /no longer has/.test(body)) return undefined;
      requireConsole(response);
      return JSON.parse(body) as DecisionDetail; // the service writes this shape
    },
    async openEvents(signal) {
      const response = await open('/console/api/events', signal);
      requireConsole(response);
      return readEvents(response.setEncoding('utf8'));
    },
  };
}

/** Reads an event stream to its end, which the signal or the service causes. */
async function* readEvents(chunks: AsyncIterable<string>): AsyncIterable<ConsoleEvent> {
  let text = '';
  try {
    for await (const chunk of chunks) {
      const parts = (text + chunk).split('\n\n');
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

function requireConsole({ statusCode }: IncomingMessage): void {
  if (statusCode === 404) throw new UsageError('admin: there is no console. Start the service with CONSOLE=on.');
  if (statusCode !== 200) throw new UsageError(`admin: the console responds with ${statusCode}.`);
}

async function get(url: URL, key: string, signal: AbortSignal): Promise<IncomingMessage> {
  try {
    return await new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${key}` };
      request(url, { headers, agent: false, signal }, resolve).on('error', reject).end();
    });
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
  const local = await findLocalProvider(findCacheFolder(environment), '');
  if (local?.admin !== undefined) return local.admin;
  throw new UsageError('id: no running portcullis dev was found. Add --admin URL of a service, or --file LOG.');
}

/** The key must not leave this host. */
function readAdmin(admin: string): URL {
  const url = URL.canParse(admin) ? new URL(admin) : undefined;
  if (url?.protocol === 'http:' && /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(url.hostname)) return url;
  throw new UsageError('admin: write the URL of the admin listener on this host, as in http://127.0.0.1:9464.');
}

function findKeys(environment: Environment, keyFile: string | undefined): readonly string[] {
  const named = keyFile ?? environment['CONSOLE_KEY_FILE'];
  const files = named === undefined || named === '' ? findDevFiles(environment) : [named];
  return files.flatMap((file) => {
    try {
      const key = readFileSync(file, 'utf8').trim();
      return keyForm.test(key) ? [key] : [];
    } catch {
      return [];
    }
  });
}

function findDevFiles(environment: Environment): readonly string[] {
  try {
    const folder = findCacheFolder(environment);
    return readdirSync(folder)
      .filter((name) => name.startsWith(consoleKeyPrefix))
      .map((name) => join(folder, name));
  } catch {
    return [];
  }
}
