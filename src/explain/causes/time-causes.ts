import type { JsonObject } from '../../core/jose/json.ts';
import { showText } from '../../core/shown-text.ts';
import { textOf } from '../facts.ts';
import { formatDuration } from '../shown-time.ts';
import type { Cause } from './cause.ts';

/** Above it a time is in milliseconds, or more than 3000 years away. */
const latest = 10 ** 11;
/** Seconds: the largest usual difference of two clocks; more is a time zone, or a token written by hand. */
const maxDrift = 6 * 3600;

const halfHour = 1800;
/** Seconds: the largest offset of a time zone, and the usual age of a token when it is pasted. */
const maxZone = 14 * 3600 + 120;
const fresh = 120;

const timeNames = ['exp', 'nbf', 'iat'] as const;

function inMilliseconds(claims: JsonObject): string | undefined {
  return timeNames.find((name) => typeof claims[name] === 'number' && claims[name] > latest);
}

/** Seconds by which the later time is ahead of this host; 0 if none is ahead. */
function leadOf({ iat, nbf }: JsonObject, now: number): number {
  const times = [iat, nbf].filter((time): time is number => typeof time === 'number' && time <= latest);
  return Math.max(0, ...times.map((time) => time - now));
}

/** The number of seconds that a string is; `undefined` for other values. */
function readString(time: unknown): number | undefined {
  const text = textOf(time);
  const seconds = /^\d{1,11}(?:\.\d+)?$/.test(text) ? Number(text) : Date.parse(text) / 1000;
  return text === '' || Number.isNaN(seconds) ? undefined : seconds;
}

function mapTimes(claims: JsonObject, change: (time: unknown) => unknown): JsonObject {
  return Object.fromEntries(timeNames.filter((name) => name in claims).map((name) => [name, change(claims[name])]));
}

/** Seconds by which `iat` is wrong if it is off by whole hours, or by a half hour of a time zone. */
function shiftOf({ iat }: JsonObject, now: number): number | undefined {
  if (typeof iat !== 'number' || Math.abs(iat - now) > maxZone) return undefined;
  const steps = Math.round((iat - now) / halfHour);
  // A token that is an hour or two old has more often just expired.
  const isZone = (steps % 2 === 0 || Math.abs(steps) >= 7) && (steps > 0 || steps <= -6);
  return steps !== 0 && isZone && Math.abs(iat - now - steps * halfHour) <= fresh ? steps * halfHour : undefined;
}

export const timeCauses: readonly Cause[] = [
  {
    id: 'milliseconds',
    reasons: ['malformed_exp', 'malformed_nbf', 'malformed_iat', 'not_yet_valid', 'issued_in_future'],
    meaning: 'The provider writes times in milliseconds. RFC 7519 requires seconds.',
    fix: 'At the provider, write times in seconds: divide by 1000 and round down.',
    find: ({ seen: { claims } }) => {
      const name = inMilliseconds(claims);
      if (name === undefined) return undefined;
      const toSeconds = (time: unknown) => (Number(time) > latest ? Math.floor(Number(time) / 1000) : time);
      return { note: `${name} is above 10^11`, trial: { claims: mapTimes(claims, toSeconds) } };
    },
  },
  {
    id: 'time_as_string',
    reasons: ['malformed_exp', 'malformed_nbf', 'malformed_iat'],
    meaning: 'The provider writes times as strings. RFC 7519 requires numbers.',
    fix: 'At the provider, write times as numbers of seconds, without quotation marks.',
    find: ({ seen: { claims } }) => {
      const name = timeNames.find((each) => readString(claims[each]) !== undefined);
      if (name === undefined) return undefined;
      return {
        note: `${name} is the string "${showText(textOf(claims[name]), 24)}"`,
        trial: { claims: mapTimes(claims, (time) => readString(time) ?? time) },
      };
    },
  },
  {
    id: 'local_time',
    reasons: ['issued_in_future', 'not_yet_valid', 'expired'],
    meaning: 'The provider writes its local time as UTC, so times are wrong by whole hours.',
    fix: 'At the provider, write times in UTC (Date.now() / 1000, time.time(), DateTimeOffset.UtcNow).',
    find: ({ seen: { claims }, now }) => {
      const shift = shiftOf(claims, now);
      if (shift === undefined) return undefined;
      const direction = shift > 0 ? 'future' : 'past';
      return { note: `iat is ${formatDuration(Math.abs(shift))} in the ${direction}: local time instead of UTC?` };
    },
  },
  {
    id: 'clock_behind',
    reasons: ['issued_in_future', 'not_yet_valid'],
    meaning: 'The clock of this host is behind the clock of the provider.',
    fix: 'Set the clock of this host: timedatectl set-ntp true. To compare the clocks: portcullis doctor',
    find: ({ seen: { claims }, now }) => {
      const lead = leadOf(claims, now);
      if (lead === 0 || lead > maxDrift || inMilliseconds(claims) !== undefined) return undefined;
      return { note: `the token is from ${formatDuration(lead)} in the future` };
    },
  },
  {
    id: 'clock_behind',
    reasons: ['proof_too_old'],
    meaning: 'The clock of the client is behind, or the client uses one proof for several requests.',
    fix: 'Create a proof for each request, and set the clock of the client by NTP.',
    find: ({ seen: { proofClaims }, now }) => {
      const { iat } = proofClaims;
      if (typeof iat !== 'number' || iat >= now) return undefined;
      return { note: `iat of the proof is ${formatDuration(now - iat)} in the past` };
    },
  },
  {
    id: 'clock_ahead',
    reasons: ['proof_in_future'],
    meaning: 'The clock of the client is ahead of the clock of this host.',
    fix: 'Set the clock of the client by NTP, or require nonces, which make the clock of the client irrelevant.',
    find: ({ seen: { proofClaims }, now }) => {
      const { iat } = proofClaims;
      if (typeof iat !== 'number' || iat <= now) return undefined;
      const note = `iat of the proof is ${formatDuration(iat - now)} in the future`;
      return { note, trial: { proofClaims: { iat: Math.floor(now) } } };
    },
  },
  {
    id: 'token_expired',
    reasons: ['expired'],
    meaning: 'The token is older than its lifetime.',
    fix: 'Get a new token before exp, or after a refusal with invalid_token.',
    find: ({ seen: { claims }, now }) => {
      const { exp, iat } = claims;
      if (typeof exp !== 'number' || exp > now) return undefined;
      const lifetime = typeof iat === 'number' && exp > iat ? `; it lived for ${formatDuration(exp - iat)}` : '';
      const note = `expired ${formatDuration(now - exp)} ago${lifetime}`;
      // With a wrong time zone a new token has expired too.
      return shiftOf(claims, now) === undefined ? { note, trial: { claims: { exp: Math.floor(now) + 60 } } } : { note };
    },
  },
];
