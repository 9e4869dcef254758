import { afterEach, beforeEach, vi } from 'vitest';

/** The output so far. */
export interface OwnOutput {
  stdout: string;
  stderr: string;
}

/** Collects what each test prints in this process, which is not a terminal. `onStdout` is called after each part. */
export function useOutput(onStdout = (_text: string): void => undefined): OwnOutput {
  const output: OwnOutput = { stdout: '', stderr: '' };
  const { isTTY } = process.stderr;
  beforeEach(() => {
    process.stderr.isTTY = false;
    for (const name of ['stdout', 'stderr'] as const) {
      output[name] = '';
      vi.spyOn(process[name], 'write').mockImplementation((chunk) => {
        output[name] += String(chunk);
        if (name === 'stdout') onStdout(output.stdout);
        return true;
      });
    }
  });
  afterEach(() => {
    vi.restoreAllMocks();
    process.stderr.isTTY = isTTY;
  });
  return output;
}
