import * as v from 'valibot';
import { attempt } from '../../core/attempt.ts';
import { parseJsonObject } from '../../core/jose/json.ts';
import { readJwks } from '../../core/keys/jwks.ts';
import type { FetchedKeys } from '../../core/keys/loaded-keys.ts';
import { codeOf } from '../../core/shown-text.ts';
import { readRegularFile, replaceFile, UnusableFile } from '../lifecycle/file.ts';
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

/**
 * Opens the file that stores key sets for a restart, by issuer. A user who can write to the file decides which tokens are valid. So a
 * file that another user could have written, or a broken file, is ignored with one line in the log.
 */
export function openKeysCache(options: KeysCacheOptions) {
  const { file, staleSeconds, log, now = () => Date.now() / 1000 } = options;
  const ignore = (problem: string): void => log.write('warn', 'keys_cache_ignored', { problem });
  const readEntries = () => {
    const read = v.safeParse(cacheFile, parseJsonObject(readRegularFile(file, maxFileBytes, 'own')));
    if (!read.success) throw new UnusableFile('It is broken.');
    return new Map(Object.entries(read.output.issuers));
  };
  let entries: ReturnType<typeof readEntries> = new Map();
  try {
    entries = readEntries();
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') ignore(describe(error));
  }
  const isInTime = ({ fetchedAt, lifetimeSeconds }: v.InferOutput<typeof cachedKeys>): boolean => {
    const age = now() - fetchedAt;
    return age >= -clockTolerance && age < lifetimeSeconds + staleSeconds;
  };
  /** Takes over what another process has stored later. */
  const merge = (): void => {
    for (const [issuer, stored] of attempt(readEntries) ?? []) {
      const { fetchedAt = Number.NEGATIVE_INFINITY } = entries.get(issuer) ?? {};
      if (stored.fetchedAt > fetchedAt && isInTime(stored)) entries.set(issuer, stored);
    }
  };
  let writing: Promise<void> | undefined;
  let changed = false;

  const write = async (): Promise<void> => {
    while (changed) {
      changed = false;
      merge();
      await replaceFile(file, JSON.stringify({ version, issuers: Object.fromEntries(entries) })).catch(
        (error: unknown) => log.write('warn', 'keys_cache_not_written', { problem: describe(error) }),
      );
    }
    writing = undefined;
  };

  return {
    find(issuer: string): FetchedKeys | undefined {
      const entry = entries.get(issuer);
      if (entry === undefined) return undefined;
      const age = now() - entry.fetchedAt;
      if (isInTime(entry)) {
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

function hasUsableKeys(keys: unknown): boolean {
  try {
    return readJwks({ keys }).keys.size > 0;
  } catch {
    return false;
  }
}

/** Omits the path, which the setting names. */
function describe(error: unknown): string {
  if (error instanceof UnusableFile) return error.message;
  const code = codeOf(error);
  return code === 'ELOOP' ? 'It is a link.' : `It cannot be read or written (${code}).`;
}
