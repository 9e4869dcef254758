import type { AccessError } from '../failures.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Claims } from './claims.ts';

/** What a policy looks at; a verified token is one. */
export interface JudgedToken {
  readonly claims: Claims;
  readonly scopes: ReadonlySet<string>;
  readonly verifiedBy: {
    readonly issuer: {
      /** Seconds. */
      readonly expTolerance: number;
      /** Seconds. */
      readonly nbfTolerance: number;
      readonly permissionsClaim: string;
    };
  };
}

/** Claims that a schema has given. */
export interface Given {
  readonly claims: unknown;
}

/** A refusal; the claims for the handler; or `undefined` where those stay as they are. */
export type Verdict = AccessError | Given | undefined;

/** A policy that can work. */
export interface CheckedPolicy {
  /** What the challenge names. */
  readonly scopes: readonly string[];
  /** Whether a schema gives the claims. */
  readonly hasSchema: boolean;
  /** A promise where a schema has to wait. `now` is in seconds. */
  judge(token: JudgedToken, now: number): MaybePromise<Verdict>;
}
