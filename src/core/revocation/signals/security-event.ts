import { isJsonObject, isTime, type JsonObject } from '../../jose/json.ts';
import { Refused } from '../../refused.ts';
import { missingKeys } from '../../token/access-token.ts';
import { hasAudience } from '../../token/claims.ts';
import { type EventIssuer, verifyEventToken } from '../../token/event-token.ts';
import { isCutoffValue } from '../record.ts';
import type { EventCutoff } from '../revocations.ts';
import { type Stream, signalOfType, verificationType } from './stream-options.ts';

/** Nothing to do for an event that is not listed, or a subject that no token can be found by. */
type WithoutCutoff = 'verification' | 'event' | 'subject_unsupported' | 'subject_foreign';

/** Error codes for a transmitter (RFC 8935 §2.4). */
export const eventErrors = ['invalid_request', 'invalid_key', 'invalid_issuer', 'invalid_audience'] as const;
export type SecurityEventError = (typeof eventErrors)[number];

const types: ReadonlySet<string | undefined> = new Set(['secevent+jwt', 'application/secevent+jwt']);

/** Verifies a security event token (RFC 8417). An `Refused` is about the key, which may have to be fetched. */
export function readSecurityEvent(
  token: string,
  stream: Stream,
  issuer: EventIssuer,
): EventCutoff | WithoutCutoff | SecurityEventError | Refused {
  const audiences = new Set([stream.audience]);
  let defect: SecurityEventError = 'invalid_request';
  const verified = verifyEventToken(token, {
    types,
    findIssuer(claims) {
      if (claims['iss'] === issuer.issuer) return issuer;
      defect = 'invalid_issuer';
      return new Refused('invalid_issuer');
    },
    accepts({ aud, iat, jti, sub, exp, events, sub_id: subject }) {
      if (!hasAudience(aud, audiences)) {
        defect = 'invalid_audience';
        return false;
      }
      const hasOne =
        isJsonObject(events) && Object.keys(events).length === 1 && Object.values(events).every(isJsonObject);
      const isNamed = typeof jti === 'string' && jti !== '' && isTime(iat);
      return hasOne && isNamed && isJsonObject(subject) && sub === undefined && exp === undefined;
    },
  });
  if (!(verified instanceof Refused)) return interpret(verified.claims, stream);
  if (missingKeys.has(verified.reason)) return verified;
  return verified.reason === 'invalid_signature' ? 'invalid_key' : defect;
}

function interpret({ events, sub_id: subject, iat }: JsonObject, stream: Stream): EventCutoff | WithoutCutoff {
  const [type = '', event] = Object.entries(events as Readonly<Record<string, JsonObject>>)[0] ?? []; // as was checked
  if (type === verificationType) return 'verification';
  const name = signalOfType.get(type);
  if (name === undefined || !stream.events.includes(name)) return 'event';
  const key = readSubject(subject as JsonObject, stream.issuer); // as was checked
  if (typeof key === 'string') return `subject_${key}`;
  const timestamp = event?.['event_timestamp'];
  const before = typeof timestamp === 'number' && timestamp >= 0 ? timestamp : Number(iat);
  return { issuer: stream.issuer, ...key, before, event: name };
}

/** Tokens that a subject identifies: those with this value. */
type SubjectKey = Pick<EventCutoff, 'kind' | 'value'>;
type SubjectDefect = 'unsupported' | 'foreign';

/**
 * Reads a subject (RFC 9493). `unsupported` for a format that no token can be found by, `foreign` for another issuer.
 * A complex subject stands for its session, or for its user if it has none that a token can be found by.
 */
function readSubject(subject: JsonObject, issuer: string): SubjectKey | SubjectDefect {
  if (subject['format'] !== 'complex') return readSimple(subject, issuer, 'sub');
  const { session, user } = subject;
  const ofSession = isJsonObject(session) ? readSimple(session, issuer, 'sid') : 'unsupported';
  if (ofSession !== 'unsupported') return ofSession;
  return isJsonObject(user) ? readSimple(user, issuer, 'sub') : 'unsupported';
}

function readSimple(subject: JsonObject, issuer: string, kind: 'sub' | 'sid'): SubjectKey | SubjectDefect {
  const { format, iss, sub, id, jti } = subject;
  if (format === 'opaque') return key(kind, id);
  if (format === 'jwt_id') return iss === issuer ? key('jti', jti) : 'foreign';
  // The subject of an issuer is a user, and not a session.
  if (format === 'iss_sub' && kind === 'sub') return iss === issuer ? key('sub', sub) : 'foreign';
  return 'unsupported';
}

function key(kind: SubjectKey['kind'], value: unknown): SubjectKey | SubjectDefect {
  return isCutoffValue(value) ? { kind, value } : 'unsupported';
}
