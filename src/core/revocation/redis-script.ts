import { randomBytes } from 'node:crypto';
import { attempt } from '../attempt.ts';
import { createRunScript, type RedisCommands } from '../dpop/redis-script.ts';
import { maxRecords, type RevocationRecord, RevocationsFull, readRecord } from './record.ts';

/** Names of all keys and channels. The braces keep them in one slot of a cluster. */
const prefix = 'portcullis:revocation:{all}:';
const keys = [`${prefix}records`, `${prefix}untils`, `${prefix}epoch`, `${prefix}sizes`];
export const channel = `${prefix}changes`;
/** Channel of one instance, which it hears only while its subscription works. */
export const aliveChannel = (instance: string): string => `${prefix}alive:${instance}`;

/*
 * Stores records and publishes them, in one step: nothing comes between. KEYS: the records (a hash of mark and until by key),
 * the ends of their retention (a sorted set), a random value that is replaced when records may be lost, the sizes of both.
 * ARGV: the channel, the largest number of records, a new random value in case one is needed, a channel for a sign of life
 * (or empty), `all` to publish records that are not new too, and for each record key, mark and until. Expired records are
 * removed two minutes late, since clocks differ. Another program may have written: keys of another type are deleted, keys
 * do not expire, records are removed by their own end, a mark or end later than can be counts as none, and sizes that this
 * script has not left are a loss. A script that has written is no longer refused by maxmemory: PERSIST only where it is needed.
 */
const runWrite = createRunScript(`
local now = tonumber(redis.call('TIME')[1])
local foreign = 0
for i, kind in ipairs({ 'hash', 'zset', 'string', 'string' }) do
  local found = redis.call('TYPE', KEYS[i]).ok
  if found ~= kind and found ~= 'none' then
    redis.call('DEL', KEYS[i])
    foreign = foreign + 1
  end
  if redis.call('PTTL', KEYS[i]) >= 0 then foreign = foreign + redis.call('PERSIST', KEYS[i]) end
end
local function sizes() return redis.call('HLEN', KEYS[1]) .. ' ' .. redis.call('ZCARD', KEYS[2]) end
local known_sizes = redis.call('GET', KEYS[4])
if known_sizes ~= sizes() or redis.call('EXISTS', KEYS[3]) == 0 then redis.call('SET', KEYS[3], ARGV[3]) end
local function clean(most)
  local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - 120, 'LIMIT', 0, most)
  for _, key in ipairs(old) do
    local till = tonumber(string.match(redis.call('HGET', KEYS[1], key) or '', ' (%d+)$'))
    if till and till >= now - 120 then
      redis.call('ZADD', KEYS[2], till, key)
      foreign = foreign + 1
    else
      redis.call('HDEL', KEYS[1], key)
      redis.call('ZREM', KEYS[2], key)
    end
  end
end
clean(200)
local latest_mark, latest_till = (now + 60) * 16000, now + 40000000
local full = 0
local changed = {}
for i = 6, #ARGV, 3 do
  local key, mark, till = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local known = redis.call('HGET', KEYS[1], key)
  local known_mark, known_till = 0, 0
  if known then
    local m, t = string.match(known, '^(%d+) (%d+)$')
    known_mark, known_till = tonumber(m) or 0, tonumber(t) or 0
    if known_mark > latest_mark then known_mark = 0 end
    if known_till > latest_till then known_till = 0 end
  end
  if not known and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[2]) then clean(5000) end
  if not known and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[2]) then
    full = 1
  else
    local isLater, isNewer = tonumber(till) > known_till, tonumber(mark) > known_mark
    if not isLater then till = string.format('%d', known_till) end
    if not isNewer then mark = string.format('%d', known_mark) end
    if isLater or isNewer then redis.call('HSET', KEYS[1], key, mark .. ' ' .. till) end
    if isLater or isNewer or ARGV[5] == 'all' then
      changed[#changed + 1] = string.sub(key, 1, -2) .. ',' .. mark .. ',' .. till .. ']'
    end
    redis.call('ZADD', KEYS[2], till, key)
  end
end
if #changed > 0 then redis.call('PUBLISH', ARGV[1], '[' .. table.concat(changed, ',') .. ']') end
if ARGV[4] ~= '' then redis.call('PUBLISH', ARGV[4], 'alive') end
if known_sizes ~= sizes() then redis.call('SET', KEYS[4], sizes()) end
local run = string.match(redis.call('INFO', 'server'), '[\\r\\n]run_id:(%w+)')
return { full, (run or '') .. ' ' .. redis.call('GET', KEYS[3]), foreign }
`);
/** Removes values that are not records, unless they were replaced meanwhile. KEYS: records, ends. ARGV: key and value of each. */
const runDiscard = createRunScript(`
for i = 1, #ARGV, 2 do
  if redis.call('HGET', KEYS[1], ARGV[i]) == ARGV[i + 1] then
    redis.call('HDEL', KEYS[1], ARGV[i])
    redis.call('ZREM', KEYS[2], ARGV[i])
  end
end
`);
/** Reads a part of all records. KEYS: the records. ARGV: the cursor. */
const runScan = createRunScript(`return redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', 1000)`);

export interface Writing {
  /** Publishes records that are not new too. Default: new ones. */
  readonly publish?: 'all';
  /** Channel for a sign of life. Default: none. */
  readonly alive?: string;
}

/**
 * Writes records. Returns the `identity` of Redis, which differs if it may have lost records, and the number of `foreign` keys
 * that another program had written and that were deleted.
 */
export async function writeRecords(
  commands: RedisCommands,
  records: readonly RevocationRecord[],
  { publish, alive = '' }: Writing,
) {
  const epoch = randomBytes(9).toString('base64url');
  const written = records.flatMap(([scope, kind, name, mark, until]) => [
    JSON.stringify([scope, kind, name]),
    String(mark),
    String(Math.ceil(until)),
  ]);
  const options = { keys, arguments: [channel, String(maxRecords), epoch, alive, publish ?? '', ...written] };
  const [full, identity, foreign] = (await runWrite(commands, options)) as readonly unknown[]; // as the script returns
  if (String(full) === '1') throw new RevocationsFull();
  return { identity: String(identity), foreign: Number(foreign) };
}

/** Reads all values, records and `foreign` ones, as keys and values in turn. */
export async function* scanRecords(commands: RedisCommands) {
  let cursor = '0';
  do {
    const response = await runScan(commands, { keys: keys.slice(0, 1), arguments: [cursor] });
    const [next, pairs] = response as readonly [unknown, readonly unknown[]]; // HSCAN returns these
    cursor = String(next);
    const records: RevocationRecord[] = [];
    const foreign: string[] = [];
    for (let i = 0; i < pairs.length; i += 2) {
      const [key, value] = [String(pairs[i]), String(pairs[i + 1])];
      const names = parseJson(key);
      const record = readRecord(Array.isArray(names) ? [...names, ...value.split(' ').map(Number)] : undefined);
      if (record === undefined) foreign.push(key, value);
      else records.push(record);
    }
    yield { records, foreign };
  } while (cursor !== '0');
}

export async function discardForeign(commands: RedisCommands, foreign: readonly string[]): Promise<void> {
  await runDiscard(commands, { keys: keys.slice(0, 2), arguments: [...foreign] });
}

/** Reads a message; what is not a record in it is `undefined`. */
export function parseMessage(message: string): readonly (RevocationRecord | undefined)[] {
  const values = parseJson(message);
  return Array.isArray(values) ? values.map(readRecord) : [undefined];
}

const parseJson = (text: string): unknown => attempt((): unknown => JSON.parse(text));
