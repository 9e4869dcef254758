import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until the second in which a service was started is over: from then on a proof needs no nonce. */
export async function passStart(): Promise<void> {
  await sleep(1001 - (Date.now() % 1000));
}
