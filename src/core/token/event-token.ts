import { refuseByFirst } from '../checks.ts';
import type { JsonObject } from '../jose/json.ts';
import { Refused } from '../refused.ts';
import { type IssuerRules, readClaims, readToken, untypedChecks, verifySignature } from './access-token.ts';

export interface EventTokenRules<I extends EventIssuer> {
  /** Finds the issuer by the claims, which are not verified. */
  readonly findIssuer: (claims: JsonObject) => I | Refused;
  /** Accepted values of `typ` in lower case; `undefined` if it may be absent. */
  readonly types: ReadonlySet<string | undefined>;
  /** Reports whether the claims, which are not verified, can be accepted. Called before the key is looked up. */
  readonly accepts: (claims: JsonObject, issuer: I) => boolean;
}

export type EventIssuer = Pick<IssuerRules, 'issuer' | 'keys' | 'algorithms'>;

/** Verifies the token of an event, its signature last. The caller fetches keys for the reasons in `missingKeys`. */
export function verifyEventToken<I extends EventIssuer>(
  text: string,
  { findIssuer, types, accepts }: EventTokenRules<I>,
): { readonly claims: JsonObject; readonly issuer: I } | Refused {
  const jws = readToken(text);
  if (jws instanceof Refused) return jws;
  const claims = readClaims(jws);
  if (claims instanceof Refused) return claims;
  const { header } = jws;
  const { typ, kid } = header;
  const isTyped = typ === undefined || typeof typ === 'string';
  if (!isTyped || !types.has(typ?.toLowerCase())) return new Refused('unsupported_typ');
  const issuer = findIssuer(claims);
  if (issuer instanceof Refused) return issuer;
  const badHeader = refuseByFirst(untypedChecks, { header, algorithms: issuer.algorithms });
  if (badHeader !== undefined) return badHeader;
  if (typeof kid !== 'string') return new Refused('missing_kid');
  if (!accepts(claims, issuer)) return new Refused('malformed_claims');
  const verified = verifySignature(jws, issuer as unknown as IssuerRules); // it reads the members of an EventIssuer
  return verified instanceof Refused ? verified : { claims, issuer };
}
