import type { Check, CheckId } from '../checks.ts';
import type { Reason } from '../failures.ts';
import { type Comparison, Refused } from '../refused.ts';

/**
 * Result of a step. `follows`: it fails only because an earlier step of its group does. `blocked`: an input is missing.
 * `skipped`: a dry run does not make it. `unknown`: it needs information that was not requested.
 */
export type StepVerdict = 'pass' | 'fail' | 'follows' | 'blocked' | 'skipped' | 'unknown';

export interface Step {
  readonly id: CheckId;
  readonly verdict: StepVerdict;
  /** Reason of the refusal, for each check and for a failed stage. */
  readonly reason: Reason | undefined;
  /** The refusal; its context has facts for the operator. Only for `fail` and `follows`. */
  readonly refusal: Refused | undefined;
  readonly comparison: Comparison | undefined;
}

export type Walk = ReturnType<typeof openWalk>;

/** Begins without any step. */
export function openWalk() {
  const steps: Step[] = [];
  const failedGroups = new Set<string>();
  const note = (id: CheckId, verdict: StepVerdict, reason?: Reason, refusal?: Refused): void => {
    steps.push({ id, verdict, reason, refusal, comparison: undefined });
  };

  return {
    steps,
    checks<Facts>(checks: readonly Check<Facts>[], facts: Facts): boolean {
      let isGood = true;
      for (const { id, reason, group, passes, details, compare } of checks) {
        if (passes(facts)) {
          note(id, 'pass', reason);
          continue;
        }
        isGood = false;
        const verdict = failedGroups.has(group) ? 'follows' : 'fail';
        const refusal = new Refused(reason, details?.(facts));
        steps.push({ id, verdict, reason, refusal, comparison: compare?.(facts) });
        failedGroups.add(group);
      }
      return isGood;
    },
    /** Notes what a stage gave; `undefined` if that is nothing to go on with. */
    stage<T>(id: CheckId, outcome: T | Refused | 'unknown'): T | undefined {
      if (outcome === 'unknown') note(id, 'unknown');
      else if (outcome instanceof Refused) note(id, 'fail', outcome.reason, outcome);
      else {
        note(id, 'pass');
        return outcome;
      }
      return undefined;
    },
    block(...ids: readonly CheckId[]): void {
      for (const id of ids) note(id, 'blocked');
    },
    skip: (id: CheckId): void => note(id, 'skipped'),
    add: (step: Step): number => steps.push(step),
  };
}
