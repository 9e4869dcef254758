import type { JsonObject } from '../../core/jose/json.ts';
import type { NamedCause } from '../explained-check.ts';
import type { Facts } from '../facts.ts';

/** A fix in a form that can be applied to a copy of the request or of the rules. */
export interface Trial {
  /** Value of the Authorization header. */
  readonly authorization?: string;
  /** External URL that the service sees. */
  readonly url?: string;
  /** Members of the token's claims and of the proof's claims; `undefined` removes one. */
  readonly claims?: JsonObject;
  readonly proofClaims?: JsonObject;
  /** Settings. */
  readonly issuer?: string;
  readonly audience?: string;
  readonly algorithm?: string;
  readonly clientId?: string;
  readonly scopeClaim?: string;
  readonly subject?: 'optional';
  readonly mode?: 'allowed';
}

/** A cause that matches, before its fix is tried. */
export interface Candidate extends Omit<NamedCause, 'certainty'> {
  /** Without it the cause is at most likely. */
  readonly trial?: Trial;
}

/** Members of a cause that depend on the facts. */
export type FoundCause = Partial<Omit<Candidate, 'id'>>;

export interface Cause {
  /** Never changes its meaning. */
  readonly id: string;
  readonly reasons: readonly string[];
  readonly meaning: string;
  /** Fix and note, unless they depend on the facts. */
  readonly fix: string;
  readonly note?: string;
  /** Named only if no other cause is. */
  readonly isLast?: true;
  /** Returns what the cause has in addition, or `true` without any; `undefined` or `false` if it does not match. */
  find(facts: Facts): FoundCause | boolean | undefined;
}
