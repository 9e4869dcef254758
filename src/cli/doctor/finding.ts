import { showText } from '../../explain/shown-text.ts';
import { type Code, findingCodes } from './codes.ts';

/** `skipped`: was not looked at, and `seen` says why. `unknown`: the look itself failed. */
export type Level = 'ok' | 'warn' | 'fail' | 'skipped' | 'unknown';

/** What one look has shown. */
export interface Finding {
  readonly check: string;
  readonly level: Level;
  readonly code?: Code;
  readonly seen: string;
  readonly expected?: string;
  readonly fix?: string;
  /** Page and anchor, below `docs/`. */
  readonly docs?: string;
}

/** A finding without the name of its check, which the examination adds. */
export type Outcome = Omit<Finding, 'check'>;

/** What a problem is told with. */
export interface Problem {
  readonly seen: string;
  readonly expected?: string;
  readonly fix: string;
}

const maxLength = 300;

export const ok = (seen: string): Outcome => ({ level: 'ok', seen: showText(seen, maxLength) });

/** Nothing was looked at, and why. */
export const skipped = (why: string): Outcome => ({ level: 'skipped', seen: showText(why, maxLength) });

/** A problem by its code, whose level it has. */
export function problem(code: Code, { seen, expected, fix }: Problem): Outcome {
  return {
    level: findingCodes[code].level,
    code,
    seen: showText(seen, maxLength),
    ...(expected !== undefined && { expected: showText(expected, maxLength) }),
    fix: showText(fix, maxLength),
    docs: `doctor.md#${code.toLowerCase()}`,
  };
}
