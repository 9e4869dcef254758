import { setTimeout as sleep } from 'node:timers/promises';
import type { TestRedis } from './redis.ts';

/** Waits until the second of the start of a service is over; afterwards a proof needs no nonce. */
export async function passStart(): Promise<void> {
  await sleep(1001 - (Date.now() % 1000));
}

/** Waits for services that share a Redis: its marker is the start of its records, two seconds after the first query. */
export async function passRedisStart({ command }: TestRedis): Promise<void> {
  const readSince = async (): Promise<number> => Number(/ (\d+)\r\n/.exec(await command('GET', 'portcullis:run'))?.[1]);
  // A missing marker is NaN, and no time is later than NaN.
  while (!(Date.now() / 1000 >= (await readSince()))) await sleep(50);
}
