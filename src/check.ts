import { AccessError, type AccessErrorOptions, type Reason } from './failures.ts';

/**
 * One check. A list of checks stands in the order in which a judgement makes them. The judgement stops at the first that
 * fails; an explanation makes them all.
 */
export interface Check<Facts> {
  /** Names the check in an explanation. No other check has the same. */
  readonly id: string;
  /** Why a request is refused that does not pass. */
  readonly reason: Reason;
  /** Checks of one thing have one group: a later one also fails if an earlier one did. */
  readonly group: string;
  /** Reads the facts only: no counter, no cache, no clock. Must not throw, also if an earlier check of its list failed. */
  readonly passes: (facts: Facts) => boolean;
  /** What the refusal carries besides its reason. Asked only when the check has failed. */
  readonly details: ((facts: Facts) => AccessErrorOptions) | undefined;
}

/** The members of a check that not every check has. */
interface CheckOptions<Facts> {
  /** Default: the id. */
  readonly group?: string;
  readonly details?: (facts: Facts) => AccessErrorOptions;
}

/** Makes a check. One shape for all of them: the loop over a list stays fast. */
export function createCheck<Facts>(
  id: string,
  reason: Reason,
  passes: (facts: Facts) => boolean,
  { group = id, details }: CheckOptions<Facts> = {},
): Check<Facts> {
  return { id, reason, group, passes, details };
}

/** Makes the checks in their order; the refusal of the first that fails. */
export function refuseByFirst<Facts>(checks: readonly Check<Facts>[], facts: Facts): AccessError | undefined {
  for (const check of checks) if (!check.passes(facts)) return refuseBy(check, facts);
  return undefined;
}

/** The refusal of a check that has failed. */
export function refuseBy<Facts>({ reason, details }: Check<Facts>, facts: Facts): AccessError {
  return new AccessError(reason, details?.(facts));
}
