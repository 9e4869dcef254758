import { hash } from 'node:crypto';

/** A client that runs scripts: of Redis, of its sentinels, or of a cluster. */
export interface RedisCommands {
  /** Runs a script by its SHA-1 (EVALSHA). */
  evalSha(sha: string, options: ScriptOptions): Promise<unknown>;
  /** Runs a script (EVAL). */
  eval(script: string, options: ScriptOptions): Promise<unknown>;
}

/** A client of `@redis/client`, connected by its creator: of one Redis, of its sentinels, or of a cluster. */
export interface RedisClientLike extends RedisCommands {
  /** True while commands can be sent. */
  readonly isReady?: boolean;
  /** Makes the client that subscribes, for stores that need one. */
  duplicate?(): RedisSubscriber;
}

/** The part of a client that subscribes to channels. */
export interface RedisSubscriber {
  /** Adds a listener. */
  on(event: 'error', listener: (cause: unknown) => void): unknown;
  /** Connects, and again after a loss. */
  connect(): Promise<unknown>;
  /** Subscribes to channels (SUBSCRIBE). */
  subscribe(channels: string[], onMessage: (message: string, channel: string) => void): Promise<unknown>;
  /** Closes the connection at once. */
  destroy(): unknown;
}

/** Keys and arguments of a script; in a cluster, all keys are in one slot. */
export interface ScriptOptions {
  /** KEYS of the script. */
  readonly keys: string[];
  /** ARGV of the script. */
  readonly arguments: string[];
}

/** Seconds by which the clocks of instances and of Redis may differ. */
const clockMargin = 30;

/*
 * One script, so that nothing can come between the proof and the marker that says since when this Redis remembers.
 * KEYS: the record of the proof, the marker `<run_id> <since>`, the generation.
 * ARGV: the last moment of the proof in ms (empty to ask for the marker only), the time of the instance in ms, a new
 * generation in case one is needed, a name for this attempt.
 *
 * The marker is missing after FLUSHALL. It names another process after a restart, and after a failover to a replica,
 * which may lack the last records. In each case it is written anew, ahead of the clocks of both Redis and the
 * instance: the time of either may be wrong, and iat has whole seconds. A marker that is far ahead was written by a
 * wrong clock, and every client would be refused until then. Markers that another program wrote are replaced too.
 *
 * Lifetimes go by the clock of Redis only, so that an instance whose clock is set back cannot ask about a proof whose
 * record has ended. A client library may send a command again after a lost connection: the value tells its own record.
 */
const script = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local run = string.match(redis.call('INFO', 'server'), '[\\r\\n]run_id:(%w+)')
if not run then return redis.error_reply('ERR Redis does not tell its run_id') end
local function read(key)
  local value = redis.pcall('GET', key)
  if type(value) ~= 'table' then return value end
  return not string.find(value.err, 'WRONGTYPE', 1, true) and redis.call('GET', key)
end
local margin = ${clockMargin * 1000}
local latest = math.max(now, tonumber(ARGV[2]))
local generation = read(KEYS[3])
local written = read(KEYS[2])
local since
if written then
  local of, at = string.match(written, '^(%S+) (%d+)$')
  if of == run and #at <= 15 and tonumber(at) * 1000 <= latest + margin then since = at end
end
if not since then
  since = string.format('%d', math.floor(latest / 1000) + 2)
  redis.call('SET', KEYS[2], run .. ' ' .. since)
  generation = false
end
if not generation or not string.match(generation, '^%d+$') or tonumber(generation) >= 2 ^ 32 then
  generation = ARGV[3]
  redis.call('SET', KEYS[3], generation)
end
local outcome = 'nothing'
if ARGV[1] ~= '' then
  local left = tonumber(ARGV[1]) + margin - now
  if left <= 0 then outcome = 'late'
  elseif redis.call('SET', KEYS[1], ARGV[4], 'NX', 'PX', string.format('%d', left)) then outcome = 'first'
  elseif read(KEYS[1]) == ARGV[4] then outcome = 'first'
  else outcome = 'seen' end
end
return { outcome, since, generation }
`;
const outcomes = ['first', 'seen', 'late', 'nothing'] as const;
const runProof = createRunScript(script);

/** Runs the script; rejects with the error of Redis or of its client, and for an unknown result. */
export async function runScript(client: RedisCommands, options: ScriptOptions) {
  const answer = await runProof(client, options);
  const [written, since, generation]: readonly unknown[] = Array.isArray(answer) ? answer.map(String) : [];
  const outcome = outcomes.find((each) => each === written);
  const read = { since: Number(since), generation: Number(generation) };
  const isWord = read.generation >>> 0 === read.generation;
  if (outcome === undefined || !Number.isSafeInteger(read.since) || !isWord) {
    throw new Error('Redis gave an answer that cannot be read');
  }
  return { ...read, outcome };
}

/** Creates a function that runs a script, which is sent only to a Redis that has not seen it. */
export function createRunScript(text: string) {
  const sha = hash('sha1', text);
  return (client: RedisCommands, options: ScriptOptions): Promise<unknown> =>
    client.evalSha(sha, options).catch((error: unknown) => {
      if (error instanceof Error && error.message.startsWith('NOSCRIPT')) return client.eval(text, options);
      throw error;
    });
}
