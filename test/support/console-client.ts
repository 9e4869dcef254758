import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import type { DecisionDetail, StreamedDecisions } from '../../src/server/console/wire.ts';
import { send } from './http-client.ts';

/** A folder for the file of the key. */
export interface KeyFolder {
  readonly file: string;
  /** The settings that turn the console on. */
  readonly environment: Readonly<Record<string, string>>;
  readKey(): Promise<string>;
  close(): Promise<void>;
}

/** Makes a folder for the key of one console. */
export async function makeKeyFolder(): Promise<KeyFolder> {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-console-'));
  const file = join(folder, 'key');
  return {
    file,
    environment: { CONSOLE: 'on', CONSOLE_KEY_FILE: file },
    readKey: async () => (await readFile(file, 'utf8')).trim(),
    close: () => rm(folder, { recursive: true, force: true }),
  };
}

/** Signs in with a key. Returns the value of the Cookie header. */
export async function enterConsole(adminUrl: string, key: string): Promise<string> {
  const answer = await send(adminUrl, `/console?key=${key}`);
  const [cookie] = (answer.headers.get('set-cookie') ?? '').split(';');
  if (answer.status !== 200 || cookie === undefined) throw new Error(`the key is refused: ${answer.text}`);
  return cookie;
}

/** A service with its console, and the cookie of a user who has signed in. */
export interface OpenedConsole<Service> {
  readonly folder: KeyFolder;
  readonly service: Service;
  /** URL of the admin listener. */
  readonly admin: string;
  /** Header lines. */
  readonly cookie: readonly [name: 'Cookie', value: string];
  close(): Promise<void>;
}

/** Opens a service with its console by its settings, and signs in. */
export async function openConsole<Service extends { readonly adminUrl: string | undefined; stop(): Promise<unknown> }>(
  open: (environment: KeyFolder['environment']) => Promise<Service>,
): Promise<OpenedConsole<Service>> {
  const folder = await makeKeyFolder();
  const service = await open(folder.environment);
  const admin = service.adminUrl ?? '';
  return {
    ...{ folder, service, admin, cookie: ['Cookie', await enterConsole(admin, await folder.readKey())] },
    async close() {
      await service.stop();
      await folder.close();
    },
  };
}

/** Like {@link openConsole}, for the tests of a group. */
export async function useConsole<Service extends { readonly adminUrl: string | undefined; stop(): Promise<unknown> }>(
  open: (environment: KeyFolder['environment']) => Promise<Service>,
): Promise<OpenedConsole<Service>> {
  const opened = await openConsole(open);
  afterAll(opened.close);
  return opened;
}

/** A page that watches, seen by its bytes. */
export interface ConsoleStream {
  /** Everything that was streamed so far. */
  text(): string;
  /** Resolves when a decision with this id, or request id, was streamed. */
  until(id: string): Promise<void>;
  close(): void;
}

/** Opens the stream of decisions. */
export async function openStream(adminUrl: string, cookie: string): Promise<ConsoleStream> {
  let text = '';
  let look = (): void => {};
  const outgoing = request(new URL('/console/api/events', adminUrl), { headers: { cookie }, agent: false });
  outgoing.on('error', () => {}).end();
  await new Promise<void>((resolve, reject) => {
    outgoing.once('response', (incoming) => {
      if (incoming.statusCode !== 200) reject(new Error(`the stream is refused: ${incoming.statusCode}`));
      incoming.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
        look();
        resolve();
      });
    });
  });
  return {
    text: () => text,
    until: (id) =>
      new Promise((resolve) => {
        look = () => {
          if (
            readDecisions(text).some(({ decisions }) =>
              decisions.some((each) => [each.id, each.requestId].includes(id)),
            )
          )
            resolve();
        };
        look();
      }),
    close: () => void outgoing.destroy(),
  };
}

/** Decisions of a stream. */
export function readDecisions(text: string): readonly StreamedDecisions[] {
  return [...text.matchAll(/^event: (?:recent|decisions)\ndata: (.*)\n\n/gm)].map(
    ([, data = '']) => JSON.parse(data) as StreamedDecisions, // the service writes this shape
  );
}

/** Fetches one decision, which is streamed already or soon. */
export async function findDecision(adminUrl: string, id: string, headers: readonly string[]): Promise<DecisionDetail> {
  const answer = await send(adminUrl, `/console/api/decisions/${id}`, { headers });
  if (answer.status !== 200) throw new Error(answer.text);
  return answer.json as DecisionDetail; // the service writes this shape
}
