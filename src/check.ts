import { AccessError, type AccessErrorOptions, type Reason } from './failures.ts';

/** What a check wanted and what it saw, for the operator's log: references, which the log makes fit to be read. */
export interface Comparison {
  readonly expected?: string | Iterable<string>;
  readonly received?: unknown;
  /** For a time: the moment of the judgement, and how many seconds before and behind it are accepted. */
  readonly time?: { readonly now: number; readonly past: number; readonly ahead: number };
}

/** What a refusal was made with. It is kept beside the refusal, so that nobody who prints one prints claims. */
export interface Evidence {
  readonly compare?: (() => Comparison) | undefined;
  /** As the header of the token has it, verified or not. */
  readonly kid?: unknown;
  /** Only claims that a trusted issuer has signed, or has told. */
  readonly claims?: JsonObject;
}

type JsonObject = Readonly<Record<string, unknown>>;

const evidences = new WeakMap<AccessError, Evidence>();

/** Keeps more of what a refusal was made with. */
export function addEvidence(refusal: AccessError, evidence: Evidence): AccessError {
  evidences.set(refusal, { ...evidences.get(refusal), ...evidence });
  return refusal;
}

/** What a refusal was made with. */
export function findEvidence(refusal: AccessError): Evidence | undefined {
  return evidences.get(refusal);
}

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
  /** What is told of a failed check in the log. Asked only when the line is written. */
  readonly compare: ((facts: Facts) => Comparison) | undefined;
}

/** The members of a check that not every check has. */
interface CheckOptions<Facts> {
  /** Default: the id. */
  readonly group?: string;
  readonly details?: (facts: Facts) => AccessErrorOptions;
  readonly compare?: (facts: Facts) => Comparison;
}

/** Makes a check. One shape for all of them: the loop over a list stays fast. */
export function createCheck<Facts>(
  id: string,
  reason: Reason,
  passes: (facts: Facts) => boolean,
  { group = id, details, compare }: CheckOptions<Facts> = {},
): Check<Facts> {
  return { id, reason, group, passes, details, compare };
}

/** Makes the checks in their order; the refusal of the first that fails. */
export function refuseByFirst<Facts>(checks: readonly Check<Facts>[], facts: Facts): AccessError | undefined {
  for (const check of checks) if (!check.passes(facts)) return refuseBy(check, facts);
  return undefined;
}

/** The refusal of a check that has failed. */
export function refuseBy<Facts>({ reason, details, compare }: Check<Facts>, facts: Facts): AccessError {
  const refusal = new AccessError(reason, details?.(facts));
  return compare === undefined ? refusal : addEvidence(refusal, { compare: () => compare(facts) });
}
