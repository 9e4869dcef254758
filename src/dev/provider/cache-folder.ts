import { chmod, mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { LocalIdpFailure } from './failure.ts';

/** Variables of a process, as `process.env` has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The folder in which the local identity provider keeps its certificate and says that it runs. */
export function findCacheFolder({ XDG_CACHE_HOME: base }: Environment): string {
  // XDG Base Directory Specification: a relative path is to be ignored.
  return join(base !== undefined && isAbsolute(base) ? base : join(homedir(), '.cache'), 'portcullis');
}

/** Makes the folder, only for this user. Throws `LocalIdpFailure` if that is not possible. */
export async function makeCacheFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await chmod(folder, 0o700);
  } catch (cause) {
    throw new LocalIdpFailure(
      'The cache folder cannot be written. Set XDG_CACHE_HOME to a folder that belongs to this user.',
      { cause },
    );
  }
}
