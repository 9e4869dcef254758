import { algorithms, type TokenAlg } from '../jose/algorithms.ts';
import { checkMembers } from '../policy/members.ts';
import type { IssuerRules } from '../token/access-token.ts';
import type { ClaimPath } from '../token/claim-path.ts';
import type { TokenProfile } from '../token/profile.ts';

// Seconds.
const maxTolerance = 60;
const maxNbfTolerance = 300;

/** What the tokens of an issuer are held against. */
export interface TokenRuleOptions {
  /** One of these must be in `aud`, byte for byte. No default: it or `clientIds` must be there. */
  readonly audience?: string | readonly string[];
  /**
   * `client_id`, or `azp` if that is absent, must be one of these. With `audience` both are demanded. Without it a token
   * that has an `aud` is refused: this is for providers such as Cognito, whose access tokens have none. Default: any client.
   */
  readonly clientIds?: readonly string[];
  /** `alg` values accepted in access tokens. Default `RS256`. */
  readonly algorithms?: readonly TokenAlg[];
  /** Seconds by which clocks may differ; `nbf` goes for `iat` too. Default 5. */
  readonly clockTolerance?: number | { readonly exp: number; readonly nbf: number };
  /** Whether `sub` must be there (RFC 9068 §2.2). Default `required`. */
  readonly subject?: 'required' | 'optional';
  /**
   * Name of the claim that has the scopes, in place of `scope`: a text of scopes separated by spaces, or a list whose
   * elements are not split, such as `scp` of Okta and Entra. Default: `scope`, and a text only.
   */
  readonly scopeClaim?: string;
  /**
   * The claim that a policy with `permissions` looks at, a list: its name, or the names on the way to it, as in
   * `['realm_access', 'roles']`. Default `permissions`.
   */
  readonly permissionsClaim?: ClaimPath;
  /**
   * `rfc9068`: tokens must have `typ` `at+jwt`, `sub`, `client_id` and `jti` too (RFC 9068 §2). Default: what the other
   * options say.
   */
  readonly profile?: TokenProfile;
}

/** Whom tokens are for: at least one of the two must be said. */
export type Recipients = { readonly clientIds: readonly string[] } | { readonly audience: string | readonly string[] };

/** The rules for tokens, whoever issues them. Throws `TypeError` for what cannot work. */
export function readTokenRules(options: TokenRuleOptions): Omit<IssuerRules, 'issuer' | 'keys'> {
  const { clockTolerance = 5, subject = 'required', scopeClaim, permissionsClaim = 'permissions', profile } = options;
  const { exp, nbf } =
    typeof clockTolerance === 'number' ? { exp: clockTolerance, nbf: clockTolerance } : clockTolerance;
  // Beyond that a clock is wrong. `nbf` apart: some providers date their tokens ahead by minutes.
  const mostNbf = typeof clockTolerance === 'number' ? maxTolerance : maxNbfTolerance;
  if (!isSeconds(exp, maxTolerance) || !isSeconds(nbf, mostNbf)) {
    throw new TypeError('clockTolerance: write seconds, 0 to 60; in { exp, nbf }, nbf may be up to 300');
  }
  if (subject !== 'required' && subject !== 'optional') throw new TypeError('subject: write required or optional');
  if (typeof clockTolerance === 'object') checkMembers('clockTolerance', clockTolerance, ['exp', 'nbf']);
  if (scopeClaim !== undefined && !isText(scopeClaim)) throw new TypeError('scopeClaim: write the name of the claim');
  if (!isText(permissionsClaim) && !isTextList(permissionsClaim)) {
    throw new TypeError(
      "permissionsClaim: write the name of the claim, or the way to it in a list, as in ['realm_access', 'roles']",
    );
  }
  if (profile !== undefined && profile !== 'rfc9068') throw new TypeError('profile: write rfc9068, or leave it out');
  if (profile !== undefined && subject === 'optional') {
    throw new TypeError('subject: the profile rfc9068 demands it; leave out one of the two');
  }
  return {
    profile,
    ...readRecipients(options),
    algorithms: readAlgorithms(options.algorithms),
    expTolerance: exp,
    nbfTolerance: nbf,
    subject,
    scopeClaim,
    permissionsClaim: typeof permissionsClaim === 'string' ? permissionsClaim : [...permissionsClaim],
  };
}

/** Whom tokens are for. Throws `TypeError` if nobody is named. */
export function readRecipients({
  audience,
  clientIds,
}: TokenRuleOptions): Pick<IssuerRules, 'audiences' | 'clientIds'> {
  if (clientIds !== undefined && !isTextList(clientIds)) {
    throw new TypeError('clientIds: name at least one client, in a list, none of them empty');
  }
  const audiences = typeof audience === 'string' ? [audience] : audience;
  if (audiences === undefined ? clientIds === undefined : !isTextList(audiences)) {
    throw new TypeError(
      'audience: name at least one, none of them empty; it is the identifier of this API at the issuer. For tokens that have no aud name clientIds',
    );
  }
  return { audiences: new Set(audiences), clientIds: clientIds === undefined ? undefined : new Set(clientIds) };
}

/** The `alg` values of an option. Throws `TypeError` where there is none, or one that is not known. */
export function readAlgorithms(names: readonly string[] = ['RS256']): ReadonlySet<string> {
  if (!Array.isArray(names) || names.length === 0) throw new TypeError('algorithms: name at least one, in a list');
  for (const alg of names) {
    if (!algorithms.has(alg)) throw new TypeError(`algorithms: write any of ${[...algorithms.keys()].join(', ')}`);
  }
  return new Set(names);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function isTextList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every(isText);
}

function isSeconds(value: unknown, most: number): boolean {
  return typeof value === 'number' && value >= 0 && value <= most;
}
