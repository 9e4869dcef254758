import { createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import type { RedisClientLike } from '../../src/core/dpop/redis-script.ts';
import type { Witnessed } from '../../src/core/dpop/replay.ts';
import {
  createRedisReplayStore,
  type RedisReplayOptions,
  type RedisReplayStore,
} from '../../src/core/dpop/replay-redis.ts';
import { AccessError } from '../../src/core/failures.ts';
import { listen, until } from '../../tools/shared/network.js';

/** Opens a store that is closed with the test. */
export async function openStore(
  target: string | RedisClientLike,
  options?: RedisReplayOptions,
): Promise<RedisReplayStore> {
  const store = await createRedisReplayStore(target, options);
  onTestFinished(() => store.close());
  return store;
}

/** Opens a store like `openStore`, and waits for its connection. */
export async function openConnectedStore(...opened: Parameters<typeof openStore>): Promise<RedisReplayStore> {
  const store = await openStore(...opened);
  await until(() => store.connected);
  return store;
}

/** Returns a refusal; rejects if the value is not one. */
export async function refusal(answer: Promise<Witnessed>): Promise<AccessError> {
  const outcome = await answer;
  if (!(outcome instanceof AccessError)) throw new Error('it was not refused');
  return outcome;
}

/**
 * Starts a fake of Redis, to inject faults: it responds to each command with the returned string, if any, and ends with the test.
 * `sockets` are its connections so far.
 */
export async function startImpostor(answer: (words: readonly string[]) => string | undefined, chosenPort = 0) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      for (const words of readCommands(chunk.toString('latin1'))) socket.write(answer(words) ?? '');
    });
  });
  const port = await listen(server, chosenPort);
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port, url: `redis://127.0.0.1:${port}`, sockets: sockets as readonly Socket[] };
}

/** The reply of Redis about the start of its records; `undefined` for other commands. */
export function answerCheck(words: readonly string[]): string | undefined {
  const asksForProof = words[3]?.startsWith('portcullis:jti:') === true;
  return words[0] === 'EVALSHA' && !asksForProof ? writeAnswer('nothing') : undefined;
}

/** The reply of the script from a Redis whose records are complete. */
export function writeAnswer(outcome: string): string {
  return `*3\r\n${writeText(outcome)}${writeText('1')}${writeText('7')}`;
}

/** Encodes a string in the protocol of Redis. */
export function writeText(text: string): string {
  return `$${text.length}\r\n${text}\r\n`;
}

/** The commands in a chunk, which holds whole ones: they are short and written at once. */
function readCommands(chunk: string): readonly (readonly string[])[] {
  const commands = chunk.split(/^\*\d+\r\n/m).slice(1);
  return commands.map((command) => command.split('\r\n').filter((_, index) => index % 2 === 1));
}
