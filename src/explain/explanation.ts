import { findCheck, sectionOf } from '../checks.ts';
import type { NamedCause } from './causes/causes.ts';
import type { Repaired } from './input/input.ts';

/**
 * Result of one check. `follows`: fails only because an earlier check of its group does. `blocked`: cannot be tried,
 * because an earlier check failed. `skipped`: is not required. `unknown`: a dry run cannot decide it.
 */
export type CheckVerdict = 'pass' | 'fail' | 'follows' | 'blocked' | 'skipped' | 'unknown';

/** One check. Every string is bounded and escaped, and does not repeat a part of the credentials. */
export interface ExplainedCheck {
  readonly id: string;
  /** Checks of one value have one group. */
  readonly group: string;
  /** Name for people. Default: the id. */
  readonly label?: string;
  /** Section of the console. */
  readonly section?: string;
  readonly verdict: CheckVerdict;
  /** Reason of the refusal if the check fails. */
  readonly reason?: string;
  readonly expected?: string | readonly string[];
  readonly seen?: string;
  /** `false` if `seen` is from a token whose signature is not verified. */
  readonly verified?: boolean;
  /** A short remark, such as the distance of a time, or the reason why the check was not tried. */
  readonly why?: string;
  /** The setting that decides, and where its value comes from. */
  readonly setting?: string;
  readonly causes?: readonly NamedCause[];
  /** Fix if no cause was found. */
  readonly fix?: string;
  /** Page and anchor, below `docs/`. */
  readonly docs?: string;
}

/** The members that name a check: of its record, or of an id that only a rule or a log line has. */
export function nameCheck(id: string): Pick<ExplainedCheck, 'id' | 'group' | 'label' | 'section'> {
  const record = findCheck(id);
  if (record === undefined) return { id, group: id };
  return { id, group: record.group ?? id, label: record.label, section: sectionOf(record) };
}

/** Rules that a request was validated by. */
export interface Against {
  readonly issuer: readonly string[];
  readonly audiences: readonly string[];
  /** Source of the keys. With `none` the verdict is `undecided`. */
  readonly keys: 'fetched' | 'given' | 'none';
}

/** A claim of `show`. */
export interface ShownClaim {
  readonly claim: string;
  /** Escaped and bounded; `absent` if the token has no such claim. */
  readonly value: string;
  /** `false` if the signature of the token is not verified. */
  readonly verified: boolean;
}

/** The rule of a gate that matches the request. */
export interface DecidingRule {
  readonly id: string;
  /** `report`: the request passes regardless of the verdict. */
  readonly mode: 'enforce' | 'report';
  /** Reason of the refusal that report mode prevented. */
  readonly wouldRefuse?: string;
}

/** Every check of one request. The first check that fails has the reason of the refusal. */
export interface Explanation {
  readonly version: 1;
  readonly verdict: 'admitted' | 'refused' | 'undecided';
  /** Reason of a refusal. */
  readonly reason?: string;
  /** HTTP status of a refusal. */
  readonly status?: number;
  /** Time of the evaluation, in UTC. */
  readonly at: string;
  readonly against: Against;
  /** Absent without a gate, or if no rule matches. */
  readonly rule?: DecidingRule;
  /** Repairs of the copied input before the evaluation. */
  readonly repairs?: readonly Repaired[];
  /** Claims of the option `show`. */
  readonly shown?: readonly ShownClaim[];
  readonly checks: readonly ExplainedCheck[];
}

export const verdictStatuses: Readonly<Record<Explanation['verdict'], number>> = {
  admitted: 0,
  refused: 1,
  undecided: 69,
};

/** Orders explanations. Refused requests with credentials come first: requests for scripts and pictures have none. */
export function rankExplanation({ reason, verdict }: Pick<Explanation, 'reason' | 'verdict'>): number {
  if (verdict === 'refused') return reason === 'missing_credentials' ? 1 : 0;
  return verdict === 'undecided' ? 2 : 3;
}
