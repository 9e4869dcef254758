import type { JsonObject } from '../../core/jose/json.ts';
import { formatDuration } from '../shown-time.ts';
import type { Cause } from './cause.ts';

/** Above it a time is in milliseconds, or more than 3000 years away. */
const latest = 10 ** 11;
/** Seconds: the largest usual difference of two clocks; more is a time zone, or a token written by hand. */
const maxDrift = 6 * 3600;

const timeNames = ['exp', 'nbf', 'iat'] as const;

function inMilliseconds(claims: JsonObject): string | undefined {
  return timeNames.find((name) => typeof claims[name] === 'number' && claims[name] > latest);
}

/** Seconds by which the later time is ahead of this host; 0 if none is ahead. */
function leadOf({ iat, nbf }: JsonObject, now: number): number {
  const times = [iat, nbf].filter((time): time is number => typeof time === 'number' && time <= latest);
  return Math.max(0, ...times.map((time) => time - now));
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
      const times = timeNames.flatMap((each) => {
        const time = claims[each];
        return typeof time === 'number' && time > latest ? [[each, Math.floor(time / 1000)]] : [];
      });
      return { note: `${name} is above 10^11`, trial: { claims: Object.fromEntries(times) } };
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
      return {
        note: `expired ${formatDuration(now - exp)} ago${lifetime}`,
        trial: { claims: { exp: Math.floor(now) + 60 } },
      };
    },
  },
];
