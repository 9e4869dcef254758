import { readFile, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import type { DecisionDetail, StreamedDecisions } from '../../src/server/console/wire.ts';
import { makeFolder } from '../../tools/shared/folder.js';
import { send } from './http-client.ts';

/** A folder for the file of the key. */
export type KeyFolder = ReturnType<typeof makeKeyFolder>;

/** Makes a folder for the key of one console. */
export function makeKeyFolder() {
  const folder = makeFolder('console');
  const file = join(folder, 'key');
  return {
    file,
    /** The settings that turn the console on. */
    environment: { CONSOLE: 'on', CONSOLE_KEY_FILE: file } as Readonly<Record<string, string>>,
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

interface Watchable {
  readonly adminUrl: string | undefined;
  stop(): Promise<unknown>;
}

/** A service with its console, and the cookie of a user who has signed in. */
export type OpenedConsole<Service extends Watchable = Watchable> = Awaited<ReturnType<typeof openConsole<Service>>>;

/** Opens a service with its console by its settings, and signs in. */
export async function openConsole<Service extends Watchable>(
  open: (environment: KeyFolder['environment']) => Promise<Service>,
) {
  const folder = makeKeyFolder();
  const service = await open(folder.environment);
  const admin = service.adminUrl ?? '';
  const cookie = ['Cookie', await enterConsole(admin, await folder.readKey())] as const;
  return {
    ...{ folder, service, admin, cookie },
    async close() {
      await service.stop();
      await folder.close();
    },
  };
}

/** Like {@link openConsole}, for the tests of a group. */
export async function useConsole<Service extends Watchable>(...parameters: Parameters<typeof openConsole<Service>>) {
  const opened = await openConsole(...parameters);
  afterAll(opened.close);
  return opened;
}

/** Opens the stream of decisions: a page that watches, seen by its bytes. */
export async function openStream(adminUrl: string, cookie: string) {
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
    /** Everything that was streamed so far. */
    text: () => text,
    /** Resolves when a decision with this id, or request id, was streamed. */
    until: (id: string) =>
      new Promise<void>((resolve) => {
        look = () => {
          const decisions = readDecisions(text).flatMap((each) => each.decisions);
          if (decisions.some((each) => [each.id, each.requestId].includes(id))) resolve();
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
