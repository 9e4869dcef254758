import { randomBytes } from 'node:crypto';
import { createRunScript, type RedisCommands } from '../dpop/redis-script.ts';
import { maxRecords, type RevocationRecord, RevocationsFull, readRecord } from './record.ts';

/** Names of all keys and channels. The braces keep them in one slot of a cluster. */
const prefix = 'portcullis:revocation:{all}:';
const keys = [`${prefix}records`, `${prefix}untils`, `${prefix}epoch`];
export const channel = `${prefix}changes`;
/** Channel of one instance, which it hears only while its subscription works. */
export const aliveChannel = (instance: string): string => `${prefix}alive:${instance}`;

/*
 * Stores records and publishes those that changed, in one step: nothing comes between. KEYS: the records (a hash of mark and
 * until by key), the ends of their retention (a sorted set), a random value that is lost with the rest.
 * ARGV: the channel, the largest number of records, a new random value in case one is needed, a channel for a sign of life
 * (or empty), and for each record key, mark and until. Expired records are removed two minutes late, since clocks differ.
 */
const writeScript = `
local now = tonumber(redis.call('TIME')[1])
local function clean(most)
  local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - 120, 'LIMIT', 0, most)
  if #old > 0 then
    redis.call('HDEL', KEYS[1], unpack(old))
    redis.call('ZREM', KEYS[2], unpack(old))
  end
end
clean(200)
local full = 0
local changed = {}
for i = 5, #ARGV, 3 do
  local key, mark, till = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local known = redis.call('HGET', KEYS[1], key)
  local known_mark, known_till = 0, 0
  if known then
    local m, t = string.match(known, '^(%d+) (%d+)$')
    known_mark, known_till = tonumber(m) or 0, tonumber(t) or 0
  end
  if not known and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[2]) then clean(5000) end
  if not known and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[2]) then
    full = 1
  else
    local isLater, isNewer = tonumber(till) > known_till, tonumber(mark) > known_mark
    if not isLater then till = string.format('%d', known_till) end
    if not isNewer then mark = string.format('%d', known_mark) end
    if isLater or isNewer then
      redis.call('HSET', KEYS[1], key, mark .. ' ' .. till)
      changed[#changed + 1] = string.sub(key, 1, -2) .. ',' .. mark .. ',' .. till .. ']'
    end
    if isLater then redis.call('ZADD', KEYS[2], till, key) end
  end
end
if #changed > 0 then redis.call('PUBLISH', ARGV[1], '[' .. table.concat(changed, ',') .. ']') end
if ARGV[4] ~= '' then redis.call('PUBLISH', ARGV[4], 'alive') end
if not redis.call('GET', KEYS[3]) then redis.call('SET', KEYS[3], ARGV[3]) end
local run = string.match(redis.call('INFO', 'server'), '[\\r\\n]run_id:(%w+)')
return { full, (run or '') .. ' ' .. redis.call('GET', KEYS[3]) }
`;
/** Reads a part of all records. KEYS: the records. ARGV: the cursor, the size of the part. */
const scanScript = `return redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])`;
/** Takes or prolongs a lease. KEYS: its key. ARGV: the holder, milliseconds. */
const leaseScript = `
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
`;
const runWrite = createRunScript(writeScript);
const runScan = createRunScript(scanScript);
const runLease = createRunScript(leaseScript);
const recordsPerScan = '1000';

/** Stores records, with a sign of life if a channel is given. Returns a string that changes if Redis may have lost records. */
export async function writeRecords(
  commands: RedisCommands,
  records: readonly RevocationRecord[],
  alive: string,
): Promise<string> {
  const epoch = randomBytes(9).toString('base64url');
  const written = records.flatMap(([scope, kind, name, mark, until]) => [
    JSON.stringify([scope, kind, name]),
    String(mark),
    String(Math.ceil(until)),
  ]);
  const options = { keys, arguments: [channel, String(maxRecords), epoch, alive, ...written] };
  const [full, identity] = (await runWrite(commands, options)) as readonly unknown[]; // as the script returns
  if (String(full) === '1') throw new RevocationsFull();
  return String(identity);
}

export async function* scanRecords(commands: RedisCommands): AsyncGenerator<readonly RevocationRecord[]> {
  let cursor = '0';
  do {
    const response = await runScan(commands, { keys: keys.slice(0, 1), arguments: [cursor, recordsPerScan] });
    const [next, pairs] = response as readonly [unknown, readonly unknown[]]; // HSCAN returns these
    cursor = String(next);
    const texts = pairs.map(String);
    yield texts.flatMap((key, index) => (index % 2 === 0 ? readRecords([parseStored(key, texts[index + 1])]) : []));
  } while (cursor !== '0');
}

export function parseMessage(message: string): readonly RevocationRecord[] {
  return readRecords(parseJson(message));
}

export async function takeLease(
  commands: RedisCommands,
  task: string,
  holder: string,
  seconds: number,
): Promise<boolean> {
  const milliseconds = String(Math.ceil(seconds * 1000));
  const response = await runLease(commands, { keys: [`${prefix}lease:${task}`], arguments: [holder, milliseconds] });
  return Number(response) === 1;
}

/** Another release may have written records that this one cannot read. */
function readRecords(values: unknown): readonly RevocationRecord[] {
  return Array.isArray(values) ? values.map(readRecord).filter((each) => each !== undefined) : [];
}

function parseStored(key: string, value = ''): unknown {
  const names = parseJson(key);
  return Array.isArray(names) ? [...names, ...value.split(' ').map(Number)] : undefined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
