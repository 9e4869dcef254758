import cluster from 'node:cluster';
import { parseJsonObject } from '../../jose/json.ts';
import { createDenyList, type DenyList, type DenyValues } from '../../token-status/deny-list.ts';
import { exitCodes, StartFailure } from '../lifecycle/exit.ts';
import { IrregularFile, LargeFile, readRegularFile } from '../lifecycle/regular-file.ts';
import type { Reloads } from '../lifecycle/reload.ts';
import { watchSettledFile } from '../lifecycle/watched-file.ts';
import type { Log } from '../observation/log.ts';

/** A deny list that follows a file. */
export interface OpenDenyList {
  readonly denyList: Pick<DenyList, 'denies'>;
  /** Reads the file no more. */
  close(): void;
}

export interface OpenDenyListOptions {
  /** Path of a JSON file: `{ "jti": [...], "sub": [...], "kid": [...] }`. */
  readonly file: string;
  readonly log: Log;
  readonly reloads: Reloads;
}

const maxFileBytes = 32 * 1024 * 1024;

/**
 * Reads the deny list, and reads it again when the file has changed and on SIGHUP. A file that cannot be used changes
 * nothing: what was denied stays denied, and the log says why. At the start there is no such thing: `StartFailure`.
 */
export function openDenyList({ file, log, reloads }: OpenDenyListOptions): OpenDenyList {
  const denyList = createDenyList();
  const load = (): void => {
    denyList.replace(readValues(file));
    log.write('info', 'deny_list_loaded', { entries: denyList.list().length });
  };
  const reload = (): void => {
    try {
      load();
    } catch (error) {
      log.write('error', 'deny_list_kept', { entries: denyList.list().length, problem: describe(error) });
    }
  };
  try {
    load();
  } catch (cause) {
    // A worker that takes the place of another is started anew until the file is fixed; the others serve on.
    throw refuseToStart(cause, cluster.isWorker ? exitCodes.retry : exitCodes.config);
  }
  reloads.add(reload);
  return { denyList, close: watchSettledFile(file, reload) };
}

/** In the process before the workers, which have a list each: tries the file at the start. */
export function tryDenyList(file: string): void {
  readDenyList(file);
}

/** Reads the file once, for who only looks something up in it. A file that cannot be used: `StartFailure`. */
export function readDenyList(file: string): DenyList {
  const denyList = createDenyList();
  try {
    denyList.replace(readValues(file));
  } catch (cause) {
    throw refuseToStart(cause, exitCodes.config);
  }
  return denyList;
}

function refuseToStart(cause: unknown, exitCode: number): StartFailure {
  return new StartFailure(`DENY_LIST cannot be used. ${describe(cause).replace(/\.$/, '')}`, exitCode, { cause });
}

function readValues(file: string): DenyValues {
  const values = parseJsonObject(readRegularFile(file, maxFileBytes));
  if (values === undefined) throw new TypeError('The file is not one JSON object with unique members.');
  return values as DenyValues; // what is in it is checked as it is taken over
}

/** Nothing of the file: it names subjects. */
function describe(error: unknown): string {
  if (error instanceof LargeFile) return `The file has more than ${maxFileBytes} bytes.`;
  if (error instanceof IrregularFile) return 'It is not a regular file. Name one: it is read again when it changes.';
  const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
  return error instanceof TypeError || error instanceof RangeError
    ? error.message
    : `The file cannot be read${code}. Name one that can: a JSON object with lists under jti, sub and kid.`;
}
