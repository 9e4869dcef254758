import { type AssertionClaims, assertionType } from '../../assertion/assertion-claims.ts';
import { signCompact } from '../../jose/sign.ts';
import type { Access } from '../../resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../token/claims.ts';
import type { AssertionSigner } from './assertion-keys.ts';

export interface AssertionsOptions {
  readonly signer: AssertionSigner;
  readonly issuer: string;
  /** Seconds. */
  readonly lifetime: number;
  readonly claims: readonly string[];
  /** Seconds since the epoch. */
  readonly now?: () => number;
}

export interface AssertionTarget {
  /** Id of the rule. */
  readonly rule: string;
  readonly audience: string;
}

export interface BoundRequest {
  readonly method: string;
  /** URL that the client called, without query and fragment. */
  readonly url: string;
}

export interface Assertions {
  /** The assertion for a token and a rule, from the cache unless it is bound to a request. */
  write(access: Access<RegisteredClaims>, target: AssertionTarget, bound?: BoundRequest): SignedAssertion;
}

/** An assertion. The same object while it is cached. */
export interface SignedAssertion {
  readonly value: string;
  /** End of its use for further requests, in seconds since the epoch. */
  readonly until: number;
}

export function createAssertions(options: AssertionsOptions): Assertions {
  const { signer, issuer, lifetime, claims: listed, now = () => Date.now() / 1000 } = options;
  const header = { alg: signer.alg, kid: signer.kid, typ: assertionType };
  // By the claims of a cached token: an evicted or revoked token takes its assertions with it.
  const cached = new WeakMap<object, Map<string, SignedAssertion>>();

  const sign = (
    access: Access<RegisteredClaims>,
    target: AssertionTarget,
    time: number,
    bound?: BoundRequest,
  ): string => {
    const { claims, scopes } = access;
    const further = listed.filter((name) => Object.hasOwn(claims, name)).map((name) => [name, claims[name]]);
    const iat = Math.floor(time);
    const payload: AssertionClaims = {
      ...Object.fromEntries(further),
      iss: issuer,
      aud: target.audience,
      iat,
      exp: Math.min(iat + lifetime, claims.exp),
      ...pickStrings({ sub: claims.sub, client_id: claims.client_id ?? claims['azp'] }),
      ...(scopes.size > 0 && { scope: [...scopes].join(' ') }),
      caller_iss: claims.iss,
      ...(Object.hasOwn(claims, 'act') && { act: claims['act'] as AssertionClaims['act'] }), // checked with the token
      rule: target.rule,
      ...(bound !== undefined && { htm: bound.method, htu: bound.url }),
    };
    return signCompact(header, payload, signer);
  };

  return {
    write(access, target, bound) {
      const time = now();
      if (bound !== undefined) return { value: sign(access, target, time, bound), until: time };
      const byRule = cached.get(access.claims) ?? new Map<string, SignedAssertion>();
      cached.set(access.claims, byRule);
      const known = byRule.get(target.rule);
      if (known !== undefined && time < known.until) return known;
      const assertion = { value: sign(access, target, time), until: Math.floor(time) + lifetime / 2 };
      byRule.set(target.rule, assertion);
      return assertion;
    },
  };
}

function pickStrings(members: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(members).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}
