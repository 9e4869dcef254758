/** `certain`: the fix was applied to a copy, and the failed check then passed. `likely`: everything else. */
export type Certainty = 'certain' | 'likely';

/** A cause that matches, with its id. */
export interface NamedCause {
  /** Name, of the page of causes. */
  readonly id: string;
  /** `certain` if the fix was tried with success. */
  readonly certainty: Certainty;
  /** Fix: a line to write, or one sentence. */
  readonly fix: string;
  /** Fix if the first is not possible. */
  readonly or?: string;
  /** The decisive fact, in a few words. */
  readonly note?: string;
}

/**
 * Result of one check. `follows`: fails only because an earlier check of its group does. `blocked`: cannot be tried,
 * because an earlier check failed. `skipped`: is not required. `unknown`: a dry run cannot decide it.
 */
export type CheckVerdict = 'pass' | 'fail' | 'follows' | 'blocked' | 'skipped' | 'unknown';

/** One check. Every string is bounded and escaped, and does not repeat a part of the credentials. */
export interface ExplainedCheck {
  /** Name of the check. */
  readonly id: string;
  /** Checks of one value have one group. */
  readonly group: string;
  /** Name for people. Default: the id. */
  readonly label?: string;
  /** Section of the console. */
  readonly section?: string;
  /** Result. */
  readonly verdict: CheckVerdict;
  /** Reason of the refusal if the check fails. */
  readonly reason?: string;
  /** Accepted value or values. */
  readonly expected?: string | readonly string[];
  /** Value in the request. */
  readonly seen?: string;
  /** `false` if `seen` is from a token whose signature is not verified. */
  readonly verified?: boolean;
  /** A short remark, such as the distance of a time, or the reason why the check was not tried. */
  readonly why?: string;
  /** The setting that decides, and where its value comes from. */
  readonly setting?: string;
  /** Causes of a failure, certain ones first. */
  readonly causes?: readonly NamedCause[];
  /** Fix if no cause was found. */
  readonly fix?: string;
  /** Page and anchor, below `docs/`. */
  readonly docs?: string;
}
