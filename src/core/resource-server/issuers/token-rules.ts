import { readAlgorithms, type TokenAlg, tokenAlgs } from '../../jose/jws.ts';
import {
  checkMembers,
  checkValues,
  isObject,
  isText,
  isTextList,
  isWithin,
  type OptionCheck,
  type OptionMembers,
  oneOf,
} from '../../option-members.ts';
import type { IssuerRules } from '../../token/access-token.ts';
import type { TokenProfile } from '../../token/claims.ts';
import type { PermissionsPath } from '../../token/grants.ts';

// Seconds.
const maxTolerance = 60;
const maxNbfTolerance = 300;

/** Rule for the `sub` claim. */
export type Subject = 'required' | 'optional';

/** Rules for the tokens of an issuer. */
export interface TokenRuleOptions {
  /**
   * One of these must be in `aud`, byte for byte. No default: it or `clientIds` must be there. `'unchecked'` is for issuers
   * whose tokens have neither `aud` nor a client: every token that the issuer signs for any application is then admitted
   * here, and a service that receives such a token can use it at this API. A token with `aud` or with a client is refused.
   * An API with the identifier `unchecked` writes `['unchecked']`.
   */
  readonly audience?: string | readonly string[];
  /**
   * `client_id`, or `azp` if that is absent, must be one of these. With `audience` both are required. Without it a token that
   * has an `aud` is refused: this is for providers such as Cognito, whose access tokens have none. Default: any client.
   */
  readonly clientIds?: readonly string[];
  /** Name of the claim with the client, such as `cid` (Okta) or `appid` (Entra). Default: `client_id`, or `azp` if it is absent. */
  readonly clientIdClaim?: string;
  /** `alg` values accepted in access tokens. Default `RS256`. */
  readonly algorithms?: readonly TokenAlg[];
  /** Seconds by which clocks may differ; `nbf` goes for `iat` too. Default 5. */
  readonly clockTolerance?: number | { readonly exp: number; readonly nbf: number };
  /** Rule for `sub` (RFC 9068 §2.2). Default: `required`. */
  readonly subject?: Subject;
  /**
   * Name of the claim that has the scopes, instead of `scope`: a string of scopes separated by spaces, or an array whose
   * elements are not split, such as `scp` of Okta and Entra. Default: `scope`, and only a string.
   */
  readonly scopeClaim?: string;
  /**
   * The array claim that a policy with `permissions` reads: its name, or its path, as in `['realm_access', 'roles']`; or several such paths, whose arrays are merged, as in
   * `[['realm_access', 'roles'], ['resource_access', 'orders', 'roles']]`. Default `permissions`.
   */
  readonly permissionsClaim?: PermissionsPath;
  /** `rfc9068`: tokens must have `typ` `at+jwt`, `sub`, `client_id` and `jti` too (RFC 9068 §2). Default: none. */
  readonly profile?: TokenProfile;
}

const claimName: OptionCheck = [isText, 'write the name of the claim'];
export const tokenRuleMembers = {
  ...({ audience: true, clientIds: true, clientIdClaim: claimName, algorithms: true, clockTolerance: true } as const),
  ...({ subject: oneOf('required', 'optional'), scopeClaim: claimName, permissionsClaim: true } as const),
  profile: [(value: unknown) => value === 'rfc9068', 'write rfc9068, or leave it out'],
} as const satisfies OptionMembers<TokenRuleOptions>;

/** Recipients of tokens: at least one of the two is required. */
export type Recipients = { readonly clientIds: readonly string[] } | { readonly audience: string | readonly string[] };

/** The rules for tokens of any issuer. Throws `TypeError` for invalid options. */
export function readTokenRules(options: TokenRuleOptions): Omit<IssuerRules, 'issuer' | 'keys'> {
  checkValues(options, tokenRuleMembers);
  const { clockTolerance: both = 5, subject = 'required', scopeClaim, clientIdClaim, profile } = options;
  const { algorithms = ['RS256'] } = options;
  const { exp, nbf } = isObject(both) ? both : { exp: both, nbf: both };
  // Beyond that a clock is wrong. `nbf` apart: some providers date their tokens ahead by minutes.
  const mostNbf = typeof both === 'number' ? maxTolerance : maxNbfTolerance;
  if (!isWithin(0, maxTolerance)(exp) || !isWithin(0, mostNbf)(nbf)) {
    throw new TypeError('clockTolerance: write seconds, 0 to 60; in { exp, nbf }, nbf may be up to 300');
  }
  if (typeof both === 'object') checkMembers('clockTolerance', both, ['exp', 'nbf']);
  if (profile !== undefined && subject === 'optional') {
    throw new TypeError('subject: the profile rfc9068 demands it; leave out one of the two');
  }
  return {
    profile,
    ...readRecipients(options),
    algorithms: readAlgorithms(algorithms, tokenAlgs),
    expTolerance: exp,
    nbfTolerance: nbf,
    subject,
    scopeClaim,
    clientIdClaim,
    permissionsClaim: readPermissionsPath(options.permissionsClaim),
  };
}

export function readRecipients({
  audience,
  clientIds,
}: TokenRuleOptions): Pick<IssuerRules, 'audiences' | 'clientIds' | 'isUnchecked'> {
  if (clientIds !== undefined && !isTextList(clientIds)) {
    throw new TypeError('clientIds: name at least one client, in a list, none of them empty');
  }
  if (audience === 'unchecked') {
    if (clientIds === undefined) return { audiences: new Set(), clientIds, isUnchecked: true };
    throw new TypeError("audience: clientIds check whom tokens are for; leave out 'unchecked'");
  }
  const audiences = typeof audience === 'string' ? [audience] : audience;
  if (audiences === undefined ? clientIds === undefined : !isTextList(audiences)) {
    throw new TypeError(
      'audience: name at least one, none of them empty; it is the identifier of this API at the issuer. For tokens that have no aud name clientIds',
    );
  }
  // A file of environment variables may keep the quotation marks of its values; no token would have this audience.
  const [edge] =
    audiences?.map((each) => /^[\s"'“”]|[\s"'“”]$/.exec(each)?.[0]).filter((each) => each !== undefined) ?? [];
  if (edge !== undefined) throw new TypeError(`audience: remove ${JSON.stringify(edge)} from its beginning or end`);
  return { audiences: new Set(audiences), clientIds: clientIds === undefined ? undefined : new Set(clientIds) };
}

function readPermissionsPath(path: PermissionsPath = 'permissions'): PermissionsPath {
  if (isText(path)) return path;
  if (isTextList(path)) return [...path];
  if (Array.isArray(path) && path.length > 0 && path.every(isTextList)) return path.map((each) => [...each]);
  throw new TypeError(
    "permissionsClaim: write the name of the claim, or the way to it in a list, as in ['realm_access', 'roles'], or a list of such lists",
  );
}
