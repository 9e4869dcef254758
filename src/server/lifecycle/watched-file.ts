import { statSync, unwatchFile, watchFile } from 'node:fs';

/** Milliseconds between looks at a file. It is watched by name, so a file that is renamed into place is seen too. */
const lookInterval = 1000;
/** Milliseconds that a changed file must stay unchanged: half of a YAML file is a complete YAML file. */
const quietTime = 500;
/** Milliseconds after which a file that keeps changing is read nevertheless: 5 s after the first change, at the latest. */
const longestWait = 3500;

/** Calls `onChange` for each change of a file, once the file is unchanged. Returns what ends this. */
export function watchSettledFile(path: string, onChange: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const settle = (seen: string, deadline: number): void => {
    timer = setTimeout(() => {
      const next = describeFile(path);
      if (next !== seen && performance.now() < deadline) {
        settle(next, deadline);
      } else {
        timer = undefined;
        onChange();
      }
    }, quietTime).unref();
  };
  const look = (): void => {
    if (timer === undefined) settle(describeFile(path), performance.now() + longestWait);
  };
  watchFile(path, { interval: lookInterval, persistent: false }, look);
  return () => {
    unwatchFile(path, look);
    clearTimeout(timer);
  };
}

/** Differs after each change, also where a tool keeps the time of modification. */
function describeFile(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join();
  } catch {
    return 'absent';
  }
}
