import { randomUUID } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import * as v from 'valibot';
import { parseJsonObject } from '../../core/jose/json.ts';
import { readJwks } from '../../core/keys/jwks.ts';
import type { FetchedKeys } from '../../core/keys/loaded-keys.ts';
import { codeOf } from '../../core/shown-text.ts';
import type { Log } from '../observation/log.ts';

interface KeysCacheOptions {
  readonly file: string;
  /** Seconds beyond freshness that keys may be used. */
  readonly staleSeconds: number;
  readonly log: Pick<Log, 'write'>;
  /** Seconds since the epoch. */
  readonly now?: () => number;
}

const version = 1;
/** Read, write and rename by its owner. */
const mode = 0o600;
const writableByOthers = 0o022;
const maxFileBytes = 8 * 1024 * 1024;
const maxLifetime = 3600;
/** Seconds by which a clock may have been set back since the file was written. */
const clockTolerance = 5;

const cachedKeys = v.object({
  /** Seconds since the epoch. */
  fetchedAt: v.number(),
  lifetimeSeconds: v.pipe(v.number(), v.gtValue(0), v.maxValue(maxLifetime)),
  published: v.pipe(v.array(v.string()), v.readonly()),
  keys: v.custom<readonly object[]>(hasUsableKeys),
});

const cacheFile = v.object({ version: v.literal(version), issuers: v.record(v.string(), cachedKeys) });

type Entry = v.InferOutput<typeof cachedKeys>;

/** A file that is ignored; the message has the cause. */
class UnusableFile extends Error {
  override readonly name = 'UnusableFile';
}

/**
 * Opens the file that stores key sets for a restart, by issuer. A user who can write to the file decides which tokens are valid. So a
 * file that another user could have written, or a broken file, is ignored with one line in the log.
 */
export async function openKeysCache(options: KeysCacheOptions) {
  const { file, staleSeconds, log, now = () => Date.now() / 1000 } = options;
  const ignore = (problem: string): void => log.write('warn', 'keys_cache_ignored', { problem });
  const entries = new Map<string, Entry>();
  try {
    for (const [issuer, entry] of await readEntries(file)) entries.set(issuer, entry);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') ignore(describe(error));
  }
  let writing: Promise<void> | undefined;
  let changed = false;

  const write = async (): Promise<void> => {
    while (changed) {
      changed = false;
      await writeFile(file, JSON.stringify({ version, issuers: Object.fromEntries(entries) })).catch((error: unknown) =>
        log.write('warn', 'keys_cache_not_written', { problem: describe(error) }),
      );
    }
    writing = undefined;
  };

  return {
    find(issuer: string): FetchedKeys | undefined {
      const entry = entries.get(issuer);
      if (entry === undefined) return undefined;
      const age = now() - entry.fetchedAt;
      if (age >= -clockTolerance && age < entry.lifetimeSeconds + staleSeconds) {
        const { keys, published, lifetimeSeconds } = entry;
        return { keys, published, lifetimeSeconds, ageSeconds: Math.max(0, age) };
      }
      entries.delete(issuer);
      ignore(age < 0 ? 'The keys are dated in the future.' : 'The keys are too old.');
      return undefined;
    },
    /** Writes in the background; a failure is logged. */
    keep(issuer: string, { keys, published, ageSeconds, lifetimeSeconds }: FetchedKeys): void {
      entries.set(issuer, { keys, published, lifetimeSeconds, fetchedAt: now() - ageSeconds });
      changed = true;
      writing ??= write();
    },
    flush: async (): Promise<void> => writing,
  };
}

async function readEntries(file: string): Promise<ReadonlyMap<string, Entry>> {
  // Not blocking: the path may be a pipe without a writer.
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    assertOwn(await handle.stat());
    const read = v.safeParse(cacheFile, parseJsonObject(await handle.readFile()));
    if (!read.success) throw new UnusableFile('It is broken.');
    return new Map(Object.entries(read.output.issuers));
  } finally {
    await handle.close();
  }
}

function assertOwn(stats: Stats): void {
  if (!stats.isFile()) throw new UnusableFile('It is not a regular file.');
  if (process.getuid !== undefined && stats.uid !== process.getuid()) {
    throw new UnusableFile('It belongs to another user.');
  }
  if ((stats.mode & writableByOthers) !== 0) throw new UnusableFile('Its group or others can write to it.');
  if (stats.size > maxFileBytes) throw new UnusableFile(`It has more than ${maxFileBytes} bytes.`);
}

function hasUsableKeys(keys: unknown): boolean {
  try {
    return readJwks({ keys }).keys.size > 0;
  } catch {
    return false;
  }
}

/** Replaces the file atomically. */
async function writeFile(file: string, text: string): Promise<void> {
  const temporary = `${file}.${randomUUID()}.tmp`;
  let handle: FileHandle | undefined;
  try {
    handle = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, mode);
    await handle.writeFile(text);
    await handle.sync();
    await handle.close();
    await rename(temporary, file);
  } catch (error) {
    await handle?.close().catch(() => undefined);
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}

/** Omits the path, which the setting names. */
function describe(error: unknown): string {
  if (error instanceof UnusableFile) return error.message;
  const code = codeOf(error);
  return code === 'ELOOP' ? 'It is a link.' : `It cannot be read or written (${code}).`;
}
