import type { Facts } from '../facts.ts';

/** `certain`: what was seen has no other explanation. `likely`: it usually means this. */
export type Certainty = 'certain' | 'likely';

/** A cause that fits. */
export interface FoundCause {
  readonly certainty: Certainty;
  /** What to do: a line to write, or one sentence. */
  readonly fix: string;
  /** What to do instead, if the first is not possible. */
  readonly or?: string;
  /** What was seen that tells the cause, in a few words. */
  readonly note?: string;
}

/** Why calls are refused, beyond the reason: what people really did. */
export interface Cause {
  /** Never changes its meaning. */
  readonly id: string;
  /** Refusals that it is looked for in. */
  readonly reasons: readonly string[];
  /** What happened, in one sentence. */
  readonly meaning: string;
  /** `undefined` if it does not fit. */
  find(facts: Facts): FoundCause | undefined;
}
