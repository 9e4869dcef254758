import type { Check, CheckId } from './checks.ts';
import type { Reason } from './failures.ts';
import { type Comparison, Refused } from './refused.ts';

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

/** Steps of a dry run. A stage that has a walk notes each outcome in it, and goes on as far as it has inputs. */
export type Walk = ReturnType<typeof openWalk>;

/** Refusals because of missing information: nothing is known about the token. */
const undecided: ReadonlySet<Reason> = new Set(['keys_unavailable', 'introspection_unavailable']);

export function openWalk() {
  const steps: Step[] = [];
  const values = new Map<CheckId, unknown>();
  const failedGroups = new Set<string>();
  const note = (id: CheckId, verdict: StepVerdict, refusal?: Refused): void => {
    steps.push({ id, verdict, reason: refusal?.reason, refusal, comparison: undefined });
  };
  const stage = <T>(id: CheckId, outcome: T | Refused): T | Refused => {
    if (!(outcome instanceof Refused)) {
      note(id, 'pass');
      values.set(id, outcome);
    } else if (undecided.has(outcome.reason)) note(id, 'unknown');
    else note(id, 'fail', outcome);
    return outcome;
  };

  return {
    steps,
    values: values as ReadonlyMap<CheckId, unknown>,
    /** Makes every check, also after a failed one. */
    checks<Facts>(checks: readonly Check<Facts>[], facts: Facts): undefined {
      for (const { id, reason, group, passes, details, compare } of checks) {
        if (passes(facts)) {
          steps.push({ id, verdict: 'pass', reason, refusal: undefined, comparison: undefined });
          continue;
        }
        const verdict = failedGroups.has(group) ? 'follows' : 'fail';
        const refusal = new Refused(reason, details?.(facts));
        steps.push({ id, verdict, reason, refusal, comparison: compare?.(facts) });
        failedGroups.add(group);
      }
    },
    /** Notes and returns the outcome of a stage. */
    stage,
    /** Notes the outcome of a stage. If it is a refusal, the walk goes on with the substitute. */
    proceed<T>(id: CheckId, outcome: T | Refused, substitute: T | undefined): T | Refused {
      stage(id, outcome);
      if (!(outcome instanceof Refused) || substitute === undefined) return outcome;
      values.set(id, substitute);
      return substitute;
    },
    refusal: (): Refused | undefined => steps.find(({ verdict }) => verdict === 'fail')?.refusal,
    hasPassed: (...ids: readonly CheckId[]): boolean =>
      ids.every((id) => steps.some((step) => step.id === id && step.verdict === 'pass')),
    /** Notes steps that are not made. */
    leave(verdict: 'blocked' | 'skipped' | 'unknown', ...ids: readonly CheckId[]): undefined {
      for (const id of ids) note(id, verdict);
    },
    add: (step: Step): number => steps.push(step),
  };
}
