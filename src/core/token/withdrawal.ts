import { ask } from '../attempt.ts';
import { Refused } from '../refused.ts';
import type { RevocationParts } from '../revocation/revocations.ts';
import type { ValidToken } from './access-token.ts';
import type { RegisteredClaims } from './claims.ts';

/** A valid token, for the application's own check. */
export interface RevocableToken {
  /** Verified claims. */
  readonly claims: RegisteredClaims;
  /** Key id of the signature; `undefined` for an introspected token. */
  readonly kid: string | undefined;
}

/**
 * Reports whether a valid token is revoked. Called at every request, after all other checks of the token. If it throws, rejects,
 * takes longer than 3 s or returns anything but `true` and `false`, the request gets 503 `revocation_unknown`.
 */
export type IsRevoked = (token: RevocableToken) => boolean | Promise<boolean>;

type Outcome = Refused | undefined;

export interface WithdrawalStep {
  readonly id: 'revocation' | 'is_revoked';
  /** The token is valid except that it may have been withdrawn. */
  readonly refuse: (token: Pick<ValidToken, 'claims' | 'verifiedBy'>) => Outcome | Promise<Outcome>;
}

/** The order in which a token can turn out to be withdrawn: lifetime and cutoffs, the application's own check. */
export function createWithdrawalSteps(
  revocations: RevocationParts | undefined,
  isRevoked: IsRevoked | undefined,
): readonly WithdrawalStep[] {
  const steps: readonly (WithdrawalStep | undefined)[] = [
    revocations && { id: 'revocation', refuse: ({ claims }) => revocations.check(claims) },
    isRevoked && {
      id: 'is_revoked',
      refuse: ({ claims, verifiedBy: { kid } }) => ask(() => isRevoked({ claims, kid }), readAnswer, unknown),
    },
  ];
  return steps.filter((step) => step !== undefined);
}

/** `undefined`, of a function without a return value, must not admit a token; nor must 0 and 1 be guessed. */
function readAnswer(answer: unknown): Outcome {
  if (answer === false) return undefined;
  if (answer === true) return new Refused('revoked_token');
  return unknown(new TypeError('isRevoked: it must return true or false, or a promise of it'));
}

function unknown(cause: unknown): Refused {
  return new Refused('revocation_unknown', { cause });
}
