import { isJsonObject, type JsonObject } from '../jose/json.ts';
import type { CutoffKind } from '../revocation/record.ts';

/** Tokens that a subject identifies: those with this value. */
export interface SubjectKey {
  readonly kind: CutoffKind;
  readonly value: string;
}

/**
 * Reads a subject (RFC 9493). `unsupported` for a format that no token can be found by, `foreign` for another issuer.
 * A complex subject stands for its session, or for its user if it has none that a token can be found by.
 */
export function readSubject(subject: JsonObject, issuer: string): SubjectKey | 'unsupported' | 'foreign' {
  if (subject['format'] !== 'complex') return readSimple(subject, issuer, 'sub');
  const { session, user } = subject;
  const ofSession = isJsonObject(session) ? readSimple(session, issuer, 'sid') : 'unsupported';
  if (ofSession !== 'unsupported') return ofSession;
  return isJsonObject(user) ? readSimple(user, issuer, 'sub') : 'unsupported';
}

function readSimple(subject: JsonObject, issuer: string, kind: 'sub' | 'sid'): SubjectKey | 'unsupported' | 'foreign' {
  const { format, iss, sub, id, jti } = subject;
  if (format === 'opaque') return key(kind, id);
  if (format === 'jwt_id') return iss === issuer ? key('jti', jti) : 'foreign';
  // The subject of an issuer is a user, and not a session.
  if (format === 'iss_sub' && kind === 'sub') return iss === issuer ? key('sub', sub) : 'foreign';
  return 'unsupported';
}

function key(kind: CutoffKind, value: unknown): SubjectKey | 'unsupported' {
  return typeof value === 'string' && value !== '' && value.length <= 1024 ? { kind, value } : 'unsupported';
}
