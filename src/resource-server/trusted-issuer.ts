import { algorithms } from '../jose/algorithms.ts';
import type { JwkSet } from '../jose/jwk.ts';
import type { KeySet } from '../keys/key-set.ts';
import { createStaticKeySet } from '../keys/static-key-set.ts';
import { checkPolicy } from '../policy/checked-policy.ts';
import { checkDefined, checkMembers } from '../policy/members.ts';
import type { Policy } from '../policy/policy.ts';
import type { IssuerRules } from '../token/access-token.ts';
import type { TokenProfile } from '../token/profile.ts';
import { readIssuerName } from './issuer-name.ts';

/** What the tokens of an issuer are held against. */
export interface TokenRuleOptions {
  /** One of these must be in `aud`, byte for byte. No default. */
  readonly audience?: string | readonly string[];
  /** `alg` values accepted in access tokens. Default `RS256`. */
  readonly algorithms?: readonly string[];
  /** Seconds by which clocks may differ; `nbf` goes for `iat` too. Default 5. */
  readonly clockTolerance?: number | { readonly exp: number; readonly nbf: number };
  /** Whether `sub` must be there (RFC 9068 §2.2). Default `required`. */
  readonly subject?: 'required' | 'optional';
  /** Name of the claim that a policy with `permissions` looks at. Default `permissions`. */
  readonly permissionsClaim?: string;
  /**
   * `rfc9068`: tokens must have `typ` `at+jwt`, `sub`, `client_id` and `jti` too (RFC 9068 §2). Default: what the other
   * options say.
   */
  readonly profile?: TokenProfile;
}

/** What the tokens of one issuer among several are held against. */
export interface IssuerRuleOptions extends TokenRuleOptions {
  /** Asked of every token of this issuer besides what the route asks; its schema gives the handler nothing. Default: none. */
  readonly policy?: Policy<unknown>;
}

/** An issuer that is trusted. */
export interface TrustedIssuer {
  /** https URL, compared byte for byte with `iss`; with `keys` at hand, any text. */
  readonly issuer: string;
  /** A key set, or a JWK set that is never fetched. Default: the keys that the issuer publishes. */
  readonly keys?: KeySet | JwkSet;
  /** Where it differs from the options of the server. */
  readonly rules?: IssuerRuleOptions;
}

/** Makes the key set of an issuer that came without keys. */
export type OpenKeys = (issuer: string) => KeySet;

// Seconds.
const maxTolerance = 60;
const maxNbfTolerance = 300;

/** The members of {@link IssuerRuleOptions}. */
export const ruleNames = [
  'audience',
  'algorithms',
  'clockTolerance',
  'subject',
  'permissionsClaim',
  'profile',
  'policy',
];

/** Reads one issuer; what its own rules do not say, `defaults` do. Throws `TypeError` for what cannot work. */
export function readIssuer(entry: string | TrustedIssuer, defaults: TokenRuleOptions, openKeys: OpenKeys): IssuerRules {
  if (typeof entry === 'string') return readIssuer({ issuer: readIssuerName(entry) }, defaults, openKeys);
  if (typeof entry !== 'object' || entry === null)
    throw new TypeError('issuers: write issuers, or objects with an issuer');
  // A test issuer has more members, an audience among them that is of its tokens and no rule.
  if (!('token' in entry)) checkMembers('issuers', entry, ['issuer', 'keys', 'rules']);
  const { issuer, keys, rules = {} } = entry;
  if (typeof issuer !== 'string' || issuer === '') throw new TypeError('issuer: write it as iss has it');
  checkMembers('rules', rules, ruleNames);
  checkDefined('rules', rules);
  return {
    issuer,
    keys: keys === undefined ? openKeys(issuer) : readKeys(keys),
    ...readTokenRules({ ...defaults, ...rules }),
    policy: rules.policy === undefined ? undefined : checkPolicy(rules.policy),
  };
}

/** Whether tokens of a test issuer are let in: then this is a test, where the first call follows the start at once. */
export function hasTestIssuer({ issuers }: { readonly issuers?: unknown }): boolean {
  return Array.isArray(issuers) && issuers.some(isTestIssuer);
}

function isTestIssuer(entry: unknown): boolean {
  return typeof entry === 'object' && entry !== null && 'token' in entry && 'dpopClient' in entry;
}

/** The audiences of an option. Throws `TypeError` where there is none. */
export function readAudiences(audience: unknown): ReadonlySet<string> {
  const audiences: readonly unknown[] = Array.isArray(audience) ? audience : [audience];
  if (audiences.length === 0 || !audiences.every((each) => typeof each === 'string' && each !== '')) {
    throw new TypeError(
      'audience: name at least one, none of them empty; it is the identifier of this API at the issuer',
    );
  }
  return new Set(audiences as readonly string[]); // as was just seen
}

function readKeys(keys: KeySet | JwkSet): KeySet {
  if ('find' in keys && typeof keys.find === 'function') return keys;
  if (!('keys' in keys)) throw new TypeError('keys: write a key set, or a JWK set: { keys: [...] }');
  try {
    return createStaticKeySet(keys);
  } catch (cause) {
    throw new TypeError('keys: write a JWK set with at least one public key that has a kid and is for signatures', {
      cause,
    });
  }
}

/** The rules for tokens, whoever issues them. Throws `TypeError` for what cannot work. */
export function readTokenRules(options: TokenRuleOptions): Omit<IssuerRules, 'issuer' | 'keys'> {
  const { clockTolerance = 5, subject = 'required', permissionsClaim = 'permissions', profile } = options;
  const { exp, nbf } =
    typeof clockTolerance === 'number' ? { exp: clockTolerance, nbf: clockTolerance } : clockTolerance;
  // Beyond that a clock is wrong. `nbf` apart: some providers date their tokens ahead by minutes.
  const mostNbf = typeof clockTolerance === 'number' ? maxTolerance : maxNbfTolerance;
  if (!isSeconds(exp, maxTolerance) || !isSeconds(nbf, mostNbf)) {
    throw new TypeError('clockTolerance: write seconds, 0 to 60; in { exp, nbf }, nbf may be up to 300');
  }
  if (subject !== 'required' && subject !== 'optional') throw new TypeError('subject: write required or optional');
  if (typeof permissionsClaim !== 'string' || permissionsClaim === '') {
    throw new TypeError('permissionsClaim: write the name of the claim');
  }
  if (profile !== undefined && profile !== 'rfc9068') throw new TypeError('profile: write rfc9068, or leave it out');
  if (profile !== undefined && subject === 'optional') {
    throw new TypeError('subject: the profile rfc9068 demands it; leave out one of the two');
  }
  return {
    profile,
    audiences: readAudiences(options.audience),
    algorithms: readAlgorithms(options.algorithms),
    expTolerance: exp,
    nbfTolerance: nbf,
    subject,
    permissionsClaim,
  };
}

/** The `alg` values of an option. Throws `TypeError` where there is none, or one that is not known. */
export function readAlgorithms(names: readonly string[] = ['RS256']): ReadonlySet<string> {
  if (!Array.isArray(names) || names.length === 0) throw new TypeError('algorithms: name at least one, in a list');
  for (const alg of names) {
    if (!algorithms.has(alg)) throw new TypeError(`algorithms: write any of ${[...algorithms.keys()].join(', ')}`);
  }
  return new Set(names);
}

function isSeconds(value: unknown, most: number): boolean {
  return typeof value === 'number' && value >= 0 && value <= most;
}
