import type { Check, CheckId } from '../checks.ts';
import type { Refused } from '../refused.ts';
import type { ClaimRules, RegisteredClaims } from './claims.ts';
import type { PermissionsPath } from './grants.ts';

export interface JudgedToken {
  readonly claims: RegisteredClaims;
  readonly scopes: ReadonlySet<string>;
  readonly verifiedBy: {
    readonly issuer: Pick<ClaimRules, 'expTolerance' | 'nbfTolerance'> & { readonly permissionsClaim: PermissionsPath };
  };
}

export interface Given {
  /** Claims, or the output of a schema. */
  readonly claims: unknown;
}

/** A refusal; the claims for the handler; or `undefined` if the claims do not change. */
export type Verdict = Refused | Given | undefined;

export interface PolicyFacts {
  readonly token: JudgedToken;
  /** Seconds since the epoch. */
  readonly now: number;
  /** The compact JWT that the claims are from; `undefined` if they are from an introspection response. */
  readonly jwt?: string | undefined;
  /** The request as a condition of the gate's rules reads it. */
  readonly conditionCall?: object | undefined;
}

/** Passes claims to a schema. Runs last, because it may wait. */
export type ReadClaims = (claims: RegisteredClaims) => Verdict | Promise<Verdict>;

/** Parts of a policy, for an explanation: checks and a schema, a stage, or other policies. */
export type PolicyParts =
  | {
      readonly of: 'checks';
      readonly checks: readonly Check<PolicyFacts>[];
      readonly readClaims: ReadClaims | undefined;
    }
  /** A stage that does not read the token. `received` is shown if it passes. */
  | { readonly of: 'stage'; readonly id: CheckId; readonly refusal: Refused | undefined; readonly received: string }
  /** All of them must hold; or any one will do, and the first says what is refused. */
  | { readonly of: 'all' | 'any'; readonly parts: readonly CheckedPolicy[] };

export interface CheckedPolicy {
  readonly scopes: readonly string[];
  readonly hasSchema: boolean;
  readonly made: PolicyParts;
  /** A promise if a schema has to wait. */
  judge(facts: PolicyFacts): Verdict | Promise<Verdict>;
}
