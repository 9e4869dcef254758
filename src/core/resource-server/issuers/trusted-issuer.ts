import type { JwkSet } from '../../jose/jwk.ts';
import type { KeySet } from '../../keys/key-set.ts';
import { createStaticKeySet } from '../../keys/static-key-set.ts';
import { checkMembers, type OptionMembers, refuseUndefined } from '../../option-members.ts';
import { checkPolicy } from '../../policy/checked-policy.ts';
import type { Policy } from '../../policy/policy.ts';
import type { IssuerRules } from '../../token/access-token.ts';
import { readTokenRules, type Subject, type TokenRuleOptions, tokenRuleMembers } from './token-rules.ts';

/** Rules for the tokens of one issuer among several. */
export interface IssuerRuleOptions extends TokenRuleOptions {
  /** An issuer can require `sub` if the server leaves it optional; `optional` is only for such a server: handlers count on `sub`. */
  readonly subject?: Subject;
  /** Policy for every token of this issuer, before the route's; its schema gives the handler nothing. Default: none. */
  readonly policy?: Policy<unknown>;
}

/** An issuer that is trusted. */
export interface TrustedIssuer {
  /** https URL, compared byte for byte with `iss`; with `keys` or `jwksUri`, any string. */
  readonly issuer: string;
  /** A key set, or a JWK set that is never fetched. Default: the keys that the issuer publishes. */
  readonly keys?: KeySet | JwkSet;
  /** https URL of the keys, without discovery. Default: `jwks_uri` of the issuer's discovery document. */
  readonly jwksUri?: string;
  /**
   * Allows plain http for this issuer and its key addresses: for a provider without TLS on a developer's machine or inside a
   * cluster. An attacker on the network path can replace the keys. TLS checks do not change. `onEvent` is called once.
   * Default: `false`.
   */
  readonly insecure?: boolean;
  /** Overrides of the server's options. */
  readonly rules?: IssuerRuleOptions;
}

/** Issuers by name, or with keys and rules of their own. */
export type IssuerList = readonly (string | TrustedIssuer)[];

/** Reports whether issuers are an array, which has a `find` too. */
export function isFixed(issuers: unknown): issuers is IssuerList {
  return Array.isArray(issuers);
}

export type KeySource = Pick<TrustedIssuer, 'issuer' | 'jwksUri' | 'insecure'>;

export const ruleNames = [...Object.keys(tokenRuleMembers), 'policy' satisfies keyof IssuerRuleOptions];

const issuerMembers: OptionMembers<TrustedIssuer> = {
  ...{ issuer: true, keys: true, jwksUri: true, insecure: true, rules: true },
};

interface DefaultRules {
  readonly options: TokenRuleOptions;
  /** The options, read once for all issuers without rules: there may be 100,000 of them. Default: read for each. */
  readonly rules?: ReturnType<typeof readTokenRules>;
}

/** Reads one issuer, with `defaults` where its own rules say nothing. Throws `TypeError` for what cannot work. */
export function readIssuer(
  entry: string | TrustedIssuer,
  defaults: DefaultRules,
  openKeys: (source: KeySource) => KeySet,
): IssuerRules {
  if (typeof entry === 'string') return readIssuer({ issuer: readIssuerName(entry) }, defaults, openKeys);
  if (typeof entry !== 'object' || entry === null)
    throw new TypeError('issuers: write issuers, or objects with an issuer');
  // A test issuer has more members, an audience among them that is of its tokens and no rule.
  const misplaced = 'token' in entry ? undefined : Object.keys(entry).find((name) => ruleNames.includes(name));
  if (misplaced !== undefined) {
    throw new TypeError(
      `issuers: ${misplaced} of an issuer belongs into its rules: { issuer, rules: { ${misplaced} } }`,
    );
  }
  if (!('token' in entry)) checkMembers('issuers', entry, Object.keys(issuerMembers));
  const { issuer, keys, jwksUri, insecure, rules = {} } = entry;
  if (typeof issuer !== 'string' || issuer === '') throw new TypeError('issuer: write it as iss has it');
  refuseDocumentUrl(issuer);
  checkMembers('rules', rules, ruleNames);
  for (const [name, rule] of Object.entries(rules)) if (rule === undefined) throw refuseUndefined('rules', name);
  if (rules.subject === 'optional' && defaults.options.subject !== 'optional') {
    throw new TypeError(
      "subject: an issuer can only require it; write subject: 'optional' among the options of the server",
    );
  }
  const shared = entry.rules === undefined ? defaults.rules : undefined;
  const tokenRules = shared ?? readTokenRules({ ...defaults.options, ...rules });
  const policy = rules.policy === undefined ? undefined : checkPolicy(rules.policy);
  if (insecure !== undefined && typeof insecure !== 'boolean') throw new TypeError('insecure: write true or false');
  if (keys !== undefined && (jwksUri !== undefined || insecure !== undefined)) {
    throw new TypeError('keys: a key set is not fetched. Omit keys, or omit jwksUri and insecure');
  }
  return { issuer, keys: keys === undefined ? openKeys(entry) : readKeys(keys), ...tokenRules, policy };
}

/** Reports whether tokens of a test issuer are accepted: then this is a test, and its first request follows immediately. */
export function hasTestIssuer({ issuers }: { readonly issuers?: unknown }): boolean {
  return isFixed(issuers) && issuers.some((entry) => 'token' in Object(entry) && 'dpopClient' in Object(entry));
}

function readKeys(keys: KeySet | JwkSet): KeySet {
  // An array has `find` and `keys` too.
  if (!Array.isArray(keys) && 'find' in keys && typeof keys.find === 'function') return keys;
  if (Array.isArray(keys) || !('keys' in keys))
    throw new TypeError('keys: write a key set, or a JWK set: { keys: [...] }');
  try {
    return createStaticKeySet(keys);
  } catch (cause) {
    throw new TypeError('keys: write a JWK set with at least one public key that has a kid and is for signatures', {
      cause,
    });
  }
}

const full = /^(https?):\/\/[^/?#@\s]+\/[^?#\s]*$/;
const domain = /^(?:(?!.*\.\.)[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;

/** Errors of an invalid name, with the fix. The name is not echoed: an address may hold a password. */
const mistakes: readonly (readonly [RegExp, string])[] = [
  [
    /^[\s"'“”]|[\s"'“”]$|^$/,
    'it is empty, or has white space or quotation marks around it; write idp.example, or https://idp.example/',
  ],
  [
    /[{}]/,
    'replace the placeholder: write the issuer of one tenant; many go into issuers: { find }, such as findTenants',
  ],
  [
    /^https:\/\/[^/?#@]+$/i,
    'write the domain without https://, as in idp.example, or the issuer in full with its slash, as in https://idp.example/; ' +
      "an issuer that truly has no slash goes into issuers: [{ issuer: 'https://idp.example' }]",
  ],
  [/@/, 'take the user information out; write idp.example, or https://idp.example/'],
  [/[?#]/, 'take query and fragment out: an issuer has none (RFC 8414 §2)'],
  [
    /^http:\/\//i,
    'write https:// (RFC 8414 §2); with jwksUri an http issuer is accepted; for a provider without TLS in development add insecure: true',
  ],
  [/^[a-z]*[A-Z][a-zA-Z]*:\/\//, 'write https:// in lower case, as iss has it'],
  [/^[^/]+\/$/, 'write the domain without its slash, as in idp.example, or the issuer in full: https://idp.example/'],
  [/^(?!https:)[^/]+\//, 'an issuer with a path is written in full, as in https://idp.example/realms/main'],
];

/** Finds the path of a document of the issuer, which `iss` never has; `undefined` if there is none. */
export function findDocumentPath(issuer: string): string | undefined {
  return /\/\.well-known\/[\w.-]*/i.exec(issuer)?.[0];
}

/** Throws `TypeError` for the URL of a document of the issuer: its tokens have the issuer without the well-known path. */
function refuseDocumentUrl(issuer: string): void {
  const path = findDocumentPath(issuer);
  if (path === undefined) return;
  throw new TypeError(
    `issuer: write the issuer without ${path.toLowerCase()}; it is the member issuer of its openid-configuration`,
  );
}

/** Reports whether a string is the host of an issuer, with or without a port. */
export function isDomain(text: string): boolean {
  return domain.test(text) && URL.canParse(`https://${text}/`);
}

/** The issuer in full, or by domain. Plain http: only `insecure`, or without metadata to fetch. Throws `TypeError`. */
export function readIssuerName(text: string, insecure = false): string {
  refuseDocumentUrl(text);
  const [, scheme] = full.exec(text) ?? [];
  const isFull = scheme === 'https' || (insecure && scheme === 'http');
  if (isFull && URL.canParse(text) && !/[{}]/.test(text)) return text;
  if (isDomain(text)) return `https://${text}/`;
  const [, fix = 'write a domain, as in idp.example, or the issuer in full, as in https://idp.example/'] =
    mistakes.find(([pattern]) => pattern.test(text)) ?? [];
  throw new TypeError(`issuer: ${fix}`);
}
