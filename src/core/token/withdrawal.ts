import type { RefuseDenied } from '../introspection/deny-list.ts';
import type { StatusLists } from '../introspection/status-list.ts';
import type { JsonObject } from '../jose/json.ts';
import { Refused } from '../refused.ts';
import type { RevocationParts } from '../revocation/revocations.ts';
import type { IssuerRules, ValidToken } from './access-token.ts';
import { verifyEventToken } from './event-token.ts';

/** Token that is valid except that it may have been withdrawn. */
export type WithdrawableToken = Pick<ValidToken, 'claims'> & {
  readonly verifiedBy: { readonly issuer: object; readonly kid: string | undefined };
};

export interface WithdrawalStep {
  readonly id: 'revocation' | 'status_list' | 'deny_list';
  readonly refuse: (token: WithdrawableToken) => Refused | undefined | Promise<Refused | undefined>;
}

/** The order in which a token can turn out to be withdrawn: lifetime and cutoffs, status list, deny list. */
export function createWithdrawalSteps(
  revocations: RevocationParts | undefined,
  statusLists: StatusLists<IssuerRules> | undefined,
  refuseDenied: RefuseDenied | undefined,
): readonly WithdrawalStep[] {
  const steps: readonly (WithdrawalStep | undefined)[] = [
    revocations && { id: 'revocation', refuse: ({ claims }) => revocations.check(claims) },
    statusLists && {
      id: 'status_list',
      // Opaque tokens of an issuer without keys: no list of theirs can be verified.
      refuse: ({ claims, verifiedBy: { issuer } }) =>
        'keys' in issuer || !('status' in claims)
          ? statusLists.check(claims, issuer as IssuerRules)
          : new Refused('revocation_unknown'),
    },
    refuseDenied && { id: 'deny_list', refuse: ({ claims, verifiedBy: { kid } }) => refuseDenied(claims, kid) },
  ];
  return steps.filter((step) => step !== undefined);
}

const listTypes: ReadonlySet<string | undefined> = new Set(['statuslist+jwt', 'application/statuslist+jwt']);

/** Verifies the token of a status list by the keys of the issuer whose tokens it is about. */
export function verifyStatusList(token: string, issuer: IssuerRules): JsonObject | Refused {
  const verified = verifyEventToken(token, {
    types: listTypes,
    findIssuer: ({ iss = issuer.issuer }) => (iss === issuer.issuer ? issuer : new Refused('invalid_issuer')),
    accepts: () => true,
  });
  return verified instanceof Refused ? verified : verified.claims;
}
