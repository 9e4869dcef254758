import type { NamedCause } from './causes/causes.ts';

/**
 * Of one check. `follows`: fails only because an earlier check of its group does. `blocked`: cannot be tried, since an
 * earlier check failed. `skipped`: was not asked for. `unknown`: a dry run cannot tell.
 */
export type CheckVerdict = 'pass' | 'fail' | 'follows' | 'blocked' | 'skipped' | 'unknown';

/** What became of one check. Every text is bounded and escaped, and none repeats a part of the credentials. */
export interface ExplainedCheck {
  readonly id: string;
  /** Checks that belong together; the terminal shows them in one row. */
  readonly group: string;
  readonly verdict: CheckVerdict;
  /** Why a call is refused if the check fails; absent for what refuses nothing by itself. */
  readonly reason?: string;
  readonly expected?: string | readonly string[];
  readonly seen?: string;
  /** `false` if what was seen is the text of a token whose signature is not verified. */
  readonly verified?: boolean;
  /** One short remark: how far away a time is, or why the check was not tried. */
  readonly why?: string;
  /** The setting that decides, and where its value comes from. */
  readonly setting?: string;
  readonly causes?: readonly NamedCause[];
  /** What to do if no cause was found. */
  readonly fix?: string;
  /** Page and anchor, below `docs/`. */
  readonly docs?: string;
}

/** What a call was held against. */
export interface Against {
  readonly issuer: readonly string[];
  readonly audiences: readonly string[];
  /** Where the keys come from; `none` if there are none, and then nothing can be decided. */
  readonly keys: 'fetched' | 'given' | 'none';
}

/** A claim that was asked for by name. */
export interface ShownClaim {
  readonly claim: string;
  /** Escaped and bounded; `absent` if the token has no such claim. */
  readonly value: string;
  /** `false` if it is the text of a token whose signature is not verified. */
  readonly verified: boolean;
}

/** The rule of a gate that decides about the call. */
export interface DecidingRule {
  readonly id: string;
  /** `report`: the call passes, whatever comes of it. */
  readonly mode: 'enforce' | 'report';
  /** Of a rule that only reports: why the call would have been refused. */
  readonly wouldRefuse?: string;
}

/** How one call is judged, check by check. The first check that fails has the reason of the refusal. */
export interface Explanation {
  readonly version: 1;
  readonly verdict: 'admitted' | 'refused' | 'undecided';
  /** Of a refusal. */
  readonly reason?: string;
  /** HTTP status of a refusal. */
  readonly status?: number;
  /** The moment that was judged for, in UTC. */
  readonly at: string;
  readonly against: Against;
  /** Absent without a gate, and if no rule was found. */
  readonly rule?: DecidingRule;
  /** Claims that were asked for by name. */
  readonly shown?: readonly ShownClaim[];
  readonly checks: readonly ExplainedCheck[];
}

/** The exit status for a verdict: 0 admitted, 1 refused, 69 cannot be decided. */
export const verdictStatuses: Readonly<Record<Explanation['verdict'], number>> = {
  admitted: 0,
  refused: 1,
  undecided: 69,
};
