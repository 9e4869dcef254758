import { createDenyList, type DenyList, type DenyValues } from '../../core/introspection/deny-list.ts';
import { parseJsonObject } from '../../core/jose/json.ts';
import { showCode } from '../../core/shown-text.ts';
import { StartFailure } from '../lifecycle/exit.ts';
import { IrregularFile, LargeFile, readRegularFile, watchSettledFile } from '../lifecycle/file.ts';
import type { ProcessContext } from '../lifecycle/process-context.ts';

const maxFileBytes = 32 * 1024 * 1024;

/**
 * Reads the deny list, and reads it again after a change and on SIGHUP. If the file becomes unusable, the list stays in
 * force, with a line in the log. Throws `StartFailure` if the file is unusable at startup.
 */
export function openDenyList({ settings, log, reloads, metrics }: ProcessContext): {
  readonly denyList: Pick<DenyList, 'denies'>;
  readonly close: () => void;
} {
  const { denyList: file } = settings;
  const denyList = readDenyList(file);
  const noteLoaded = (): void => log.write('info', 'deny_list_loaded', { entries: denyList.list().length });
  let reloadOk = 1;
  metrics.gauge({
    name: 'portcullis_deny_list_last_reload_ok',
    help: '1 if the last reload of the deny list succeeded, otherwise 0.',
    read: () => reloadOk,
  });
  const reload = (): void => {
    try {
      denyList.replace(readValues(file));
      noteLoaded();
      reloadOk = 1;
    } catch (error) {
      reloadOk = 0;
      log.write('error', 'deny_list_kept', { entries: denyList.list().length, problem: describe(error) });
    }
  };
  noteLoaded();
  reloads.add(reload);
  return { denyList, close: watchSettledFile(file, reload) };
}

/** Reads a JSON file: `{ "jti": [...], "sub": [...], "kid": [...] }`. Throws `StartFailure` if it is unusable. */
export function readDenyList(file: string): DenyList {
  const denyList = createDenyList();
  try {
    denyList.replace(readValues(file));
  } catch (cause) {
    const problem = describe(cause).replace(/\.$/, '');
    throw new StartFailure(`DENY_LIST cannot be used. ${problem}`, cause);
  }
  return denyList;
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
  if (error instanceof TypeError || error instanceof RangeError) return error.message;
  return `The file cannot be read${showCode(error)}. Set the path of a readable JSON object with lists under jti, sub and kid.`;
}
