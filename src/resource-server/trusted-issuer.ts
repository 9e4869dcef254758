import type { JwkSet } from '../jose/jwk.ts';
import type { KeySet } from '../keys/key-set.ts';
import { createStaticKeySet } from '../keys/static-key-set.ts';
import type { OptionMembers } from '../option-members.ts';
import { checkPolicy } from '../policy/checked-policy.ts';
import { checkDefined, checkMembers } from '../policy/members.ts';
import type { Policy } from '../policy/policy.ts';
import type { IssuerRules } from '../token/access-token.ts';
import { readIssuerName } from './issuer-name.ts';
import { readTokenRules, type TokenRuleOptions } from './token-rules.ts';

/** What the tokens of one issuer among several are held against. */
export interface IssuerRuleOptions extends TokenRuleOptions {
  /** An issuer can demand `sub` if the server leaves it optional, but not the other way round: handlers count on it. */
  readonly subject?: 'required';
  /** Asked of every token of this issuer besides what the route asks; its schema gives the handler nothing. Default: none. */
  readonly policy?: Policy<unknown>;
}

/** An issuer that is trusted. */
export interface TrustedIssuer {
  /** https URL, compared byte for byte with `iss`; with `keys` at hand, any text. */
  readonly issuer: string;
  /** A key set, or a JWK set that is never fetched. Default: the keys that the issuer publishes. */
  readonly keys?: KeySet | JwkSet;
  /** Where its keys are, without discovery: an https URL. Default: what its discovery document says. */
  readonly jwksUri?: string;
  /**
   * Allows plain http for this issuer and its key addresses: for a provider without TLS on a developer's machine or inside a
   * cluster. Whoever is on the way can put in keys of their own. How TLS is checked does not change. Default `false`.
   */
  readonly insecure?: boolean;
  /** Where it differs from the options of the server. */
  readonly rules?: IssuerRuleOptions;
}

/** Where the keys of an issuer are that came without any. */
export type KeySource = Pick<TrustedIssuer, 'issuer' | 'jwksUri' | 'insecure'>;

/** Makes the key set of an issuer that came without keys. */
export type OpenKeys = (source: KeySource) => KeySet;

const ruleMembers: OptionMembers<IssuerRuleOptions> = {
  audience: true,
  clientIds: true,
  algorithms: true,
  clockTolerance: true,
  subject: true,
  scopeClaim: true,
  permissionsClaim: true,
  profile: true,
  policy: true,
};

/** The members of {@link IssuerRuleOptions}. */
export const ruleNames: readonly string[] = Object.keys(ruleMembers);

/** The members of {@link TrustedIssuer}. */
export const issuerNames: readonly string[] = Object.keys({
  issuer: true,
  keys: true,
  jwksUri: true,
  insecure: true,
  rules: true,
} satisfies OptionMembers<TrustedIssuer>);

/** Rules for issuers that do not say otherwise. */
export interface DefaultRules {
  readonly options: TokenRuleOptions;
  /** The options, read once for all issuers without rules: there may be 100,000 of them. Default: read for each. */
  readonly rules?: ReturnType<typeof readTokenRules>;
}

/** Reads one issuer; what its own rules do not say, `defaults` do. Throws `TypeError` for what cannot work. */
export function readIssuer(entry: string | TrustedIssuer, defaults: DefaultRules, openKeys: OpenKeys): IssuerRules {
  if (typeof entry === 'string') return readIssuer({ issuer: readIssuerName(entry) }, defaults, openKeys);
  if (typeof entry !== 'object' || entry === null)
    throw new TypeError('issuers: write issuers, or objects with an issuer');
  // A test issuer has more members, an audience among them that is of its tokens and no rule.
  if (!('token' in entry)) checkMembers('issuers', entry, issuerNames);
  const { issuer, keys, rules = {} } = entry;
  if (typeof issuer !== 'string' || issuer === '') throw new TypeError('issuer: write it as iss has it');
  checkMembers('rules', rules, ruleNames);
  checkDefined('rules', rules);
  if (rules.subject !== undefined && rules.subject !== 'required') {
    throw new TypeError(
      "subject: an issuer can only demand it; write subject: 'optional' among the options of the server",
    );
  }
  const tokenRules =
    entry.rules === undefined && defaults.rules !== undefined
      ? defaults.rules
      : readTokenRules({ ...defaults.options, ...rules });
  const policy = rules.policy === undefined ? undefined : checkPolicy(rules.policy);
  checkKeySource(entry);
  return { issuer, keys: keys === undefined ? openKeys(entry) : readKeys(keys), ...tokenRules, policy };
}

/** Whether tokens of a test issuer are let in: then this is a test, where the first call follows the start at once. */
export function hasTestIssuer({ issuers }: { readonly issuers?: unknown }): boolean {
  return Array.isArray(issuers) && issuers.some(isTestIssuer);
}

function isTestIssuer(entry: unknown): boolean {
  return typeof entry === 'object' && entry !== null && 'token' in entry && 'dpopClient' in entry;
}

/** Throws `TypeError` for keys that are both at hand and to be fetched. */
export function checkKeySource({
  keys,
  jwksUri,
  insecure,
}: Pick<TrustedIssuer, 'keys' | 'jwksUri' | 'insecure'>): void {
  if (insecure !== undefined && typeof insecure !== 'boolean') throw new TypeError('insecure: write true or false');
  if (keys !== undefined && (jwksUri !== undefined || insecure !== undefined)) {
    throw new TypeError('keys: keys at hand are not fetched; leave out keys, or jwksUri and insecure');
  }
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
