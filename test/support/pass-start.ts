import { setTimeout as sleep } from 'node:timers/promises';
import type { TestRedis } from './redis.ts';

/** Waits until the second in which a service was started is over: from then on a proof needs no nonce. */
export async function passStart(): Promise<void> {
  await sleep(1001 - (Date.now() % 1000));
}

/** The same for services that share a Redis: its marker says from when on, two seconds after the first of them asked it. */
export async function passRedisStart({ command }: TestRedis): Promise<void> {
  const readSince = async (): Promise<number> => Number(/ (\d+)\r\n/.exec(await command('GET', 'portcullis:run'))?.[1]);
  // No marker yet is no number, and nothing is later than that.
  while (!(Date.now() / 1000 >= (await readSince()))) await sleep(50);
}
