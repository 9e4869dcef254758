/** The commands that tell since when a Redis remembers. */
export interface RestartClient {
  info(section: string): Promise<string>;
  get(key: string): Promise<string | null>;
  set(key: string, value: string): Promise<unknown>;
}

/** What the store itself knows. */
export interface StoreState {
  /** Seconds since the epoch. */
  readonly now: () => number;
  /** Whether this store has been connected `before`, or `never`. */
  readonly connected: 'before' | 'never';
}

/** Seconds by which the clocks of instances may differ. */
export const clockMargin = 30;

/** Holds `<run_id> <since>`: the process of Redis that remembers, and since when. */
const runKey = 'portcullis:run';

/**
 * Seconds since the epoch: the time before which this Redis may have forgotten proofs, because its process was started
 * then, empty or with what it had saved. The first to notice writes it down for all instances. Rejects where Redis
 * answers with an error or does not tell its `run_id`.
 */
export async function readSince(client: RestartClient, { now, connected }: StoreState): Promise<number> {
  const [server, written] = await Promise.all([client.info('server'), client.get(runKey)]);
  const run = /^run_id:(\S+)/m.exec(server)?.[1];
  if (run === undefined) throw new Error('Redis does not tell its run_id');
  const [, writtenRun, writtenSince] = written?.match(/^(\S+) (\d{1,15})$/) ?? [];
  // A time that is far ahead was written by a clock that is wrong: all instances would refuse until then.
  if (writtenRun === run && Number(writtenSince) <= now() + clockMargin) return Number(writtenSince);
  const isFirst = written === null && connected === 'never';
  // A second more than the time now: iat has whole seconds, and the clock of a client may be a little ahead.
  const since = isFirst ? Math.floor(now()) : Math.ceil(now()) + 1;
  await client.set(runKey, `${run} ${since}`);
  return since;
}
