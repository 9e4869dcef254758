import { chmod, mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { LocalIdpFailure } from './failure.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export function findCacheFolder({ XDG_CACHE_HOME: base }: Environment): string {
  // XDG Base Directory Specification: relative paths are ignored.
  return join(base !== undefined && isAbsolute(base) ? base : join(homedir(), '.cache'), 'portcullis');
}

/** Creates the folder for this user only. Throws `LocalIdpFailure` on failure. */
export async function makeCacheFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await chmod(folder, 0o700);
  } catch (cause) {
    const advice = 'Set XDG_CACHE_HOME to a folder that belongs to this user';
    throw new LocalIdpFailure(`The cache folder cannot be written. ${advice}`, cause);
  }
}
