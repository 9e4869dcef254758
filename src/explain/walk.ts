import type { Check } from '../check.ts';
import { AccessError, type Reason } from '../failures.ts';
import type { CheckVerdict } from './explanation.ts';

/** One check that was made, or could not be. */
export interface Step {
  readonly id: string;
  readonly group: string;
  readonly verdict: CheckVerdict;
  readonly reason: Reason | undefined;
  /** Why it was not made. */
  readonly why?: string;
  /** The refusal itself, for what it carries. */
  readonly refusal?: AccessError;
}

/** The checks so far, in the order of the judgement. */
export interface Walk {
  readonly steps: readonly Step[];
  /** A stage that gives a value or a refusal: the value; `undefined` if it refuses, or `run` has nothing to work on. */
  take<T extends object | string | boolean>(
    id: string,
    reason: Reason,
    run: () => T | AccessError | undefined,
  ): T | undefined;
  /** Every check of a list; all `blocked` without facts. */
  make<F>(checks: readonly Check<F>[], facts: F | undefined): void;
  /** A check that a dry run does not make, or that was not asked for. */
  leave(id: string, verdict: 'blocked' | 'skipped' | 'unknown', why: string): void;
}

const blockedWhy = 'cannot be tried: see what failed above';

/** Starts a walk: unlike the judgement it does not stop at the first check that fails. */
export function startWalk(): Walk {
  const steps: Step[] = [];
  const failedGroups = new Set<string>();
  const fail = (id: string, group: string, refusal: AccessError): void => {
    const verdict = failedGroups.has(group) ? 'follows' : 'fail';
    failedGroups.add(group);
    steps.push({ id, group, verdict, reason: refusal.reason, refusal });
  };
  return {
    steps,
    take(id, reason, run) {
      const value = run();
      if (value === undefined) steps.push({ id, group: id, verdict: 'blocked', reason, why: blockedWhy });
      else if (value instanceof AccessError) fail(id, id, value);
      else {
        steps.push({ id, group: id, verdict: 'pass', reason });
        return value as Exclude<typeof value, AccessError>; // as just seen
      }
      return undefined;
    },
    make(checks, facts) {
      for (const check of checks) {
        const { id, group, reason, passes, details } = check;
        if (facts === undefined) steps.push({ id, group, verdict: 'blocked', reason, why: blockedWhy });
        else if (passes(facts)) steps.push({ id, group, verdict: 'pass', reason });
        else fail(id, group, new AccessError(reason, details?.(facts)));
      }
    },
    leave(id, verdict, why) {
      steps.push({ id, group: id, verdict, reason: undefined, why });
    },
  };
}
