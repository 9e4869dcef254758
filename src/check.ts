import { type CheckId, type CheckRecord, checks } from './checks.ts';
import type { AccessErrorOptions, Reason } from './failures.ts';
import { type Comparison, Refused } from './refused.ts';

/**
 * One check. A list of checks is in the order in which authorization makes them. Authorization stops at the first that fails;
 * an explanation makes them all.
 */
export interface Check<Facts> {
  /** Names the check in an explanation. No other check has the same. */
  readonly id: CheckId;
  /** Reason of the refusal if the check fails. */
  readonly reason: Reason;
  /** Checks of one thing have one group: a later one also fails if an earlier one did. */
  readonly group: string;
  /** Reads the facts only: no counter, no cache, no clock. Must not throw, also if an earlier check of its list failed. */
  readonly passes: (facts: Facts) => boolean;
  /** Details of the refusal in addition to its reason. Called only when the check has failed. */
  readonly details: ((facts: Facts) => AccessErrorOptions) | undefined;
  /** Facts of a failed check for the log. Called only when the line is written. */
  readonly compare: ((facts: Facts) => Comparison) | undefined;
}

interface CheckOptions<Facts> {
  readonly details?: (facts: Facts) => AccessErrorOptions;
  readonly compare?: (facts: Facts) => Comparison;
}

/** Creates a check by its record in checks.ts. One shape for all of them: the loop over a list stays fast. */
export function createCheck<Facts>(
  id: CheckId,
  passes: (facts: Facts) => boolean,
  { details, compare }: CheckOptions<Facts> = {},
): Check<Facts> {
  const { reasons, group = id }: CheckRecord = checks[id];
  return { id, reason: reasons[0], group, passes, details, compare };
}

export function refuseByFirst<Facts>(checks: readonly Check<Facts>[], facts: Facts): Refused | undefined {
  for (const check of checks) if (!check.passes(facts)) return refuseBy(check, facts);
  return undefined;
}

export function refuseBy<Facts>({ reason, details, compare }: Check<Facts>, facts: Facts): Refused {
  return new Refused(reason, details?.(facts), compare && { compare: () => compare(facts) });
}
