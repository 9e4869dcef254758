import type { Check } from '../check.ts';
import { AccessError, type Reason } from '../failures.ts';
import type { StageId } from './steps.ts';

/**
 * How a step went. `follows`: it fails only because an earlier step of its group does. `blocked`: there was nothing to
 * make it with. `skipped`: a dry run does not make it. `unknown`: only somebody who was not asked could tell.
 */
export type StepVerdict = 'pass' | 'fail' | 'follows' | 'blocked' | 'skipped' | 'unknown';

/** One step, as it went. */
export interface Step {
  /** One of `stepKinds`, or `replay`. */
  readonly id: string;
  readonly verdict: StepVerdict;
  /** Why it refuses: of each check, and of a stage that failed. */
  readonly reason: Reason | undefined;
  /** What the judgement would answer with; its context has facts for the operator. Only for `fail` and `follows`. */
  readonly refusal: AccessError | undefined;
}

/** Steps, one after another. */
export interface Walk {
  readonly steps: readonly Step[];
  /** Makes all checks of a list; whether every one passes. */
  checks<Facts>(checks: readonly Check<Facts>[], facts: Facts): boolean;
  /** Notes what a stage gave; `undefined` if that is nothing to go on with. */
  stage<T>(id: StageId, outcome: T | AccessError | 'unknown'): T | undefined;
  block(...ids: readonly string[]): void;
  skip(id: string): void;
  add(step: Step): void;
}

/** Begins without any step. */
export function openWalk(): Walk {
  const steps: Step[] = [];
  const failedGroups = new Set<string>();
  const note = (id: string, verdict: StepVerdict, reason?: Reason, refusal?: AccessError): void => {
    steps.push({ id, verdict, reason, refusal });
  };

  return {
    steps,
    checks(checks, facts) {
      let isGood = true;
      for (const { id, reason, group, passes, details } of checks) {
        if (passes(facts)) {
          note(id, 'pass', reason);
          continue;
        }
        isGood = false;
        note(id, failedGroups.has(group) ? 'follows' : 'fail', reason, new AccessError(reason, details?.(facts)));
        failedGroups.add(group);
      }
      return isGood;
    },
    stage(id, outcome) {
      if (outcome === 'unknown') note(id, 'unknown');
      else if (outcome instanceof AccessError) note(id, 'fail', outcome.reason, outcome);
      else {
        note(id, 'pass');
        return outcome;
      }
      return undefined;
    },
    block(...ids) {
      for (const id of ids) note(id, 'blocked');
    },
    skip: (id) => note(id, 'skipped'),
    add: (step) => steps.push(step),
  };
}
