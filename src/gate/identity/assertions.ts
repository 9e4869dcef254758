import { type AssertionClaims, assertionType } from '../../core/assertion/assertion-claims.ts';
import { normaliseUrl } from '../../core/dpop/htu.ts';
import type { ExternalUrl } from '../../core/http/external-url.ts';
import { signCompact } from '../../core/jose/sign.ts';
import type { Access } from '../../core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../core/token/claims.ts';
import { createAnswer } from '../../server/http/exchange.ts';
import { type AssertionRules, type Rule, type Rules, RulesError } from '../match/rules.ts';
import { type AssertionKeyFiles, type AssertionSigner, importAssertionKeys } from './assertion-keys.ts';

interface AssertionsOptions extends Omit<AssertionRules, 'header'> {
  readonly signer: AssertionSigner;
  /** Seconds since the epoch. */
  readonly now?: () => number;
}

/** A request to which an assertion is bound. */
export interface BoundRequest {
  readonly method: string;
  /** URL that the client called. */
  readonly url: ExternalUrl;
}

/** An assertion. The same object while it is cached. */
export interface SignedAssertion {
  readonly value: string;
  /** Time at which it was signed, in seconds since the epoch. */
  readonly from: number;
  /** End of its use for further requests, in seconds since the epoch. */
  readonly until: number;
}

export function createAssertions(options: AssertionsOptions) {
  const { signer, issuer, lifetime, claims: listed, now = () => Date.now() / 1000 } = options;
  const header = { alg: signer.alg, kid: signer.kid, typ: assertionType };
  // By the claims of a cached token: an evicted or revoked token takes its assertions with it.
  const cached = new WeakMap<object, Map<string, SignedAssertion>>();

  const sign = (
    { claims, scopes }: Access<RegisteredClaims>,
    target: { readonly aud: string; readonly rule: string },
    bound?: BoundRequest,
  ): SignedAssertion => {
    const further = listed.filter((name) => Object.hasOwn(claims, name)).map((name) => [name, claims[name]]);
    const iat = Math.floor(now());
    const payload: AssertionClaims = {
      ...Object.fromEntries(further),
      iss: issuer,
      iat,
      exp: Math.min(iat + lifetime, claims.exp),
      ...pickStrings({ sub: claims.sub, client_id: claims.client_id ?? claims['azp'] }),
      ...(scopes.size > 0 && { scope: [...scopes].join(' ') }),
      caller_iss: claims.iss,
      ...(Object.hasOwn(claims, 'act') && { act: claims['act'] as AssertionClaims['act'] }), // checked with the token
      ...target,
      ...(bound && { htm: bound.method, htu: normaliseUrl(bound.url.origin + bound.url.path) ?? '' }),
    };
    return { value: signCompact(header, payload, signer), from: iat, until: iat + lifetime / 2 };
  };

  return {
    /** Writes the assertion for a token, from the cache unless it is bound to a request; `undefined` if the rule sends none. */
    write(access: Access<RegisteredClaims>, rule: Pick<Rule, 'id' | 'assertion'>, bound?: BoundRequest) {
      if (rule.assertion === undefined) return undefined;
      const target = { aud: rule.assertion.audience, rule: rule.id };
      if (bound !== undefined) return sign(access, target, bound);
      const byRule = cached.get(access.claims) ?? new Map<string, SignedAssertion>();
      cached.set(access.claims, byRule);
      const known = byRule.get(rule.id);
      const time = now();
      // Of a clock that was set back since, it would be dated in the future.
      if (known !== undefined && known.from <= time && time < known.until) return known;
      const assertion = sign(access, target);
      byRule.set(rule.id, assertion);
      return assertion;
    },
  };
}

function pickStrings(members: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(members).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

const noKeys: AssertionKeyFiles = { signing: undefined, published: [] };
const keySetHeaders = ['content-type', 'application/jwk-set+json', 'cache-control', 'public, max-age=300'];

/**
 * Opens the assertions of a set of rules, and the response with the published keys; `undefined` if it has none. Throws
 * `RulesError` for an unusable key, or if a rule sends assertions and no key signs them.
 */
export function openAssertions({ assertion, rules }: Rules, files: AssertionKeyFiles = noKeys) {
  if (assertion === undefined) return undefined;
  const { signer, jwks } = importAssertionKeys(files);
  if (signer === undefined && rules.some((rule) => rule.assertion !== undefined)) {
    throw new RulesError('The rules send assertions. Set ASSERTION_KEY to a PEM file with the signing key.');
  }
  const published = createAnswer(200, keySetHeaders, jwks);
  return { published, write: signer && createAssertions({ ...assertion, signer }).write };
}
