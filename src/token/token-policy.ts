import type { Check } from '../check.ts';
import type { AccessError } from '../failures.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { ClaimPath } from './claim-path.ts';
import type { RegisteredClaims } from './claims.ts';

/** What a policy looks at; a verified token is one. */
export interface JudgedToken {
  readonly claims: RegisteredClaims;
  readonly scopes: ReadonlySet<string>;
  readonly verifiedBy: {
    readonly issuer: {
      /** Seconds. */
      readonly expTolerance: number;
      /** Seconds. */
      readonly nbfTolerance: number;
      readonly permissionsClaim: ClaimPath;
    };
  };
}

/** Claims that a schema has given. */
export interface Given {
  readonly claims: unknown;
}

/** A refusal; the claims for the handler; or `undefined` where those stay as they are. */
export type Verdict = AccessError | Given | undefined;

/** What the checks of a policy look at. */
export interface PolicyFacts {
  readonly token: JudgedToken;
  /** Seconds since the epoch. */
  readonly now: number;
}

/** Hands claims to a schema; asked last, since it may wait. */
export type ReadClaims = (claims: RegisteredClaims) => MaybePromise<Verdict>;

/** What a policy is made of, for an explanation: checks and a schema, or other policies. */
export type PolicyParts =
  | {
      readonly of: 'checks';
      readonly checks: readonly Check<PolicyFacts>[];
      readonly readClaims: ReadClaims | undefined;
    }
  /** All of them must hold; or any one will do, and the first says what is refused. */
  | { readonly of: 'all' | 'any'; readonly parts: readonly CheckedPolicy[] };

/** A policy that can work. */
export interface CheckedPolicy {
  /** What the challenge names. */
  readonly scopes: readonly string[];
  /** Whether a schema gives the claims. */
  readonly hasSchema: boolean;
  readonly made: PolicyParts;
  /** A promise if a schema has to wait. */
  judge(facts: PolicyFacts): MaybePromise<Verdict>;
}
