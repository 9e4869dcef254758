import { type AssertionClaims, assertionType } from '../../core/assertion/assertion-claims.ts';
import { normaliseUrl } from '../../core/dpop/htu.ts';
import type { ReadExternalUrl } from '../../core/http/external-url.ts';
import type { Connection, ResourceRequest } from '../../core/http/request.ts';
import { signCompact } from '../../core/jose/sign.ts';
import { Refused } from '../../core/refused.ts';
import type { Access } from '../../core/resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../core/token/claims.ts';
import { type Answer, createAnswer } from '../../server/http/exchange.ts';
import { type AssertionRules, type Rule, type Rules, RulesError } from '../match/rules.ts';
import { type AssertionKeyFiles, type AssertionSigner, importAssertionKeys } from './assertion-keys.ts';

interface AssertionsOptions extends Omit<AssertionRules, 'header'> {
  readonly signer: AssertionSigner;
  /** Seconds since the epoch. */
  readonly now?: () => number;
}

interface AssertionTarget {
  /** Id of the rule. */
  readonly rule: string;
  readonly audience: string;
}

interface BoundRequest {
  readonly method: string;
  /** URL that the client called, without query and fragment. */
  readonly url: string;
}

/** Writes the assertion for a token and a rule, from the cache unless it is bound to a request. */
type WriteAssertion = (
  access: Access<RegisteredClaims>,
  target: AssertionTarget,
  bound?: BoundRequest,
) => SignedAssertion;

/** An assertion. The same object while it is cached. */
export interface SignedAssertion {
  readonly value: string;
  /** End of its use for further requests, in seconds since the epoch. */
  readonly until: number;
}

export function createAssertions(options: AssertionsOptions): { readonly write: WriteAssertion } {
  const { signer, issuer, lifetime, claims: listed, now = () => Date.now() / 1000 } = options;
  const header = { alg: signer.alg, kid: signer.kid, typ: assertionType };
  // By the claims of a cached token: an evicted or revoked token takes its assertions with it.
  const cached = new WeakMap<object, Map<string, SignedAssertion>>();

  const sign = (
    { claims, scopes }: Access<RegisteredClaims>,
    target: AssertionTarget,
    time: number,
    bound?: BoundRequest,
  ): string => {
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

export interface OpenedAssertions {
  /** Absent if no key signs. */
  readonly write?: WriteAssertion;
  /** The response with the published keys. */
  readonly published: Answer;
}

const keySetHeaders = ['content-type', 'application/jwk-set+json', 'cache-control', 'public, max-age=300'];

/**
 * Opens the assertions of a set of rules; `undefined` if it has none. Throws `RulesError` for an unusable key, or if a
 * rule sends assertions and no key signs them.
 */
export function openAssertions(
  { assertion, rules }: Rules,
  files: AssertionKeyFiles = { signing: undefined, published: [] },
): OpenedAssertions | undefined {
  if (assertion === undefined) return undefined;
  const { signer, jwks } = importAssertionKeys(files);
  if (signer === undefined && rules.some((rule) => rule.assertion !== undefined)) {
    throw new RulesError('The rules send assertions. Set ASSERTION_KEY to a PEM file with the signing key.');
  }
  const published = createAnswer(200, keySetHeaders, jwks);
  return { published, ...(signer !== undefined && createAssertions({ ...assertion, signer })) };
}

/** Writes the assertion of an admitted request; `undefined` if its rule sends none. Throws `Refused` if its URL is unknown. */
type SignIdentity = (
  rule: Rule,
  access: Access<RegisteredClaims>,
  request: ResourceRequest,
  connection: Connection | undefined,
) => SignedAssertion | undefined;

/** Creates the writer of assertions for requests; `readCalledUrl` reads the URL that the client called. */
export function createSignIdentity({ write }: OpenedAssertions, readCalledUrl: ReadExternalUrl): SignIdentity {
  return ({ id, assertion }, access, request, connection) => {
    if (assertion === undefined || write === undefined) return undefined;
    const target = { rule: id, audience: assertion.audience };
    if (!assertion.isBound) return write(access, target);
    const url = readCalledUrl(request, connection);
    if (url instanceof Refused) throw url;
    return write(access, target, { method: request.method, url: normaliseUrl(url.origin + url.path) ?? '' });
  };
}
