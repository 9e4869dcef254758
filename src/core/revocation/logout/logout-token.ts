import { isJsonObject, isTime, type JsonObject } from '../../jose/json.ts';
import type { IssuerRules } from '../../token/access-token.ts';
import { hasAudience } from '../../token/claims.ts';
import { isCutoffValue } from '../record.ts';
import type { EventCutoff } from '../revocations.ts';

/** `typ` of logout tokens; many providers write `JWT`, or none. */
export const logoutTypes: ReadonlySet<string | undefined> = new Set([
  ...[undefined, 'jwt', 'logout+jwt', 'application/logout+jwt'],
]);
const logoutEvent = 'http://schemas.openid.net/event/backchannel-logout';
/** Age of a token without `exp`, in seconds. */
const maxAge = 120;

/** Reports whether claims belong to a logout token for us (OpenID Connect Back-Channel Logout 1.0 §2.6). `now` is in seconds. */
export function isLogoutToken(
  { aud, iat, exp, events, jti, nonce, sub, sid }: JsonObject,
  { expTolerance, nbfTolerance }: Pick<IssuerRules, 'expTolerance' | 'nbfTolerance'>,
  { clientIds, now }: { readonly clientIds: ReadonlySet<string>; readonly now: number },
): boolean {
  if (!hasAudience(aud, clientIds)) return false;
  if (!isTime(iat) || iat > now + nbfTolerance) return false;
  if (exp === undefined ? iat < now - maxAge : !isTime(exp) || now >= exp + expTolerance) return false;
  if (!isJsonObject(events) || !isJsonObject(events[logoutEvent])) return false;
  if (!isCutoffValue(jti) || nonce !== undefined || (sub === undefined && sid === undefined)) return false;
  return [sub, sid].every((value) => value === undefined || isCutoffValue(value));
}

/** Cutoffs of a logout token: of its session, or of its subject if it names no session, or of both. */
export function cutoffsOfLogout(claims: JsonObject, subjects: 'without sid' | 'always'): readonly EventCutoff[] {
  const { iss, sub, sid, iat } = claims;
  const of = (kind: 'sid' | 'sub', value: unknown): readonly EventCutoff[] =>
    typeof value === 'string' ? [{ issuer: String(iss), kind, value, before: Number(iat), event: 'logout' }] : [];
  return [...of('sid', sid), ...(sid === undefined || subjects === 'always' ? of('sub', sub) : [])];
}
