import cluster from 'node:cluster';
import { parseJsonObject } from '../../jose/json.ts';
import { createDenyList, type DenyList, type DenyValues } from '../../token-status/deny-list.ts';
import { exitCodes, StartFailure } from '../lifecycle/exit.ts';
import { IrregularFile, LargeFile, readRegularFile, watchSettledFile } from '../lifecycle/file.ts';
import type { Reloads } from '../lifecycle/reload.ts';
import type { Log } from '../observation/log.ts';
import type { Metrics } from '../observation/metrics.ts';

export interface OpenDenyList {
  readonly denyList: Pick<DenyList, 'denies'>;
  close(): void;
}

export interface OpenDenyListOptions {
  /** Path of a JSON file: `{ "jti": [...], "sub": [...], "kid": [...] }`. */
  readonly file: string;
  readonly log: Log;
  readonly reloads: Reloads;
  readonly metrics: Metrics;
}

const maxFileBytes = 32 * 1024 * 1024;

/**
 * Reads the deny list, and reads it again after a change and on SIGHUP. If the file becomes unusable, the list stays in
 * force, with a line in the log. Throws `StartFailure` if the file is unusable at startup.
 */
export function openDenyList({ file, log, reloads, metrics }: OpenDenyListOptions): OpenDenyList {
  const denyList = createDenyList();
  const load = (): void => {
    denyList.replace(readValues(file));
    log.write('info', 'deny_list_loaded', { entries: denyList.list().length });
  };
  let reloadOk = 1;
  metrics.gauge({
    name: 'portcullis_deny_list_last_reload_ok',
    help: '1 if the last reload of the deny list succeeded, otherwise 0.',
    aggregate: 'min',
    read: () => reloadOk,
  });
  const reload = (): void => {
    try {
      load();
      reloadOk = 1;
    } catch (error) {
      reloadOk = 0;
      log.write('error', 'deny_list_kept', { entries: denyList.list().length, problem: describe(error) });
    }
  };
  try {
    load();
  } catch (cause) {
    // A worker that replaces another one is restarted until the file is fixed, while the other workers continue.
    throw refuseToStart(cause, cluster.isWorker ? exitCodes.retry : exitCodes.config);
  }
  reloads.add(reload);
  return { denyList, close: watchSettledFile(file, reload) };
}

/** Reads the file once. Throws `StartFailure` if it is unusable. */
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
  return values as DenyValues; // `replace` checks it
}

/** Reveals nothing of the file, which names subjects. */
function describe(error: unknown): string {
  if (error instanceof LargeFile) return `The file has more than ${maxFileBytes} bytes.`;
  if (error instanceof IrregularFile)
    return 'It is not a regular file. Set the path of a regular file, which is read again when it changes.';
  const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
  return error instanceof TypeError || error instanceof RangeError
    ? error.message
    : `The file cannot be read${code}. Set the path of a readable JSON object with lists under jti, sub and kid.`;
}
