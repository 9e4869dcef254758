import type { JsonObject } from '../../jose/json.ts';
import { formatDuration } from '../shown-time.ts';
import type { Cause } from './cause.ts';

/** Above it a time is in milliseconds, or more than 3000 years away. */
const latest = 10 ** 11;
/** Seconds: clocks that nobody sets are off by this much at most; more is a time zone, or a token made by hand. */
const maxDrift = 6 * 3600;

const timeNames = ['exp', 'nbf', 'iat'] as const;

function inMilliseconds(claims: JsonObject): string | undefined {
  return timeNames.find((name) => typeof claims[name] === 'number' && claims[name] > latest);
}

/** Seconds by which the later of the two is ahead of this machine; 0 if none is. */
function leadOf({ iat, nbf }: JsonObject, now: number): number {
  const times = [iat, nbf].filter((time): time is number => typeof time === 'number' && time <= latest);
  return Math.max(0, ...times.map((time) => time - now));
}

/** Causes of refused times. */
export const timeCauses: readonly Cause[] = [
  {
    id: 'milliseconds',
    reasons: ['malformed_exp', 'malformed_nbf', 'malformed_iat', 'not_yet_valid', 'issued_in_future'],
    meaning: 'The provider writes times in milliseconds. RFC 7519 wants seconds.',
    find: ({ seen }) => {
      const name = inMilliseconds(seen.claims);
      if (name === undefined) return undefined;
      return {
        certainty: 'certain',
        fix: 'Let the provider write times in seconds: divide by 1000 and round down.',
        note: `${name} is above 10^11`,
      };
    },
  },
  {
    id: 'clock_behind',
    reasons: ['issued_in_future', 'not_yet_valid'],
    meaning: 'The clock of this machine is behind the clock of the provider.',
    find: ({ seen, now }) => {
      const lead = leadOf(seen.claims, now);
      if (lead === 0 || lead > maxDrift || inMilliseconds(seen.claims) !== undefined) return undefined;
      return {
        certainty: 'likely',
        fix: 'Set the clock of this machine: timedatectl set-ntp true. To compare the clocks: portcullis doctor',
        note: `the token is from ${formatDuration(lead)} ahead`,
      };
    },
  },
  {
    id: 'clock_behind',
    reasons: ['proof_too_old'],
    meaning: 'The clock of the client is behind, or the client uses one proof for several calls.',
    find: ({ seen, now }) => {
      const { iat } = seen.proofClaims;
      if (typeof iat !== 'number' || iat >= now) return undefined;
      return {
        certainty: 'likely',
        fix: 'Let the client make a proof for each call, and set the clock of the client by NTP.',
        note: `the proof was made ${formatDuration(now - iat)} ago by its own clock`,
      };
    },
  },
  {
    id: 'clock_ahead',
    reasons: ['proof_in_future'],
    meaning: 'The clock of the client is ahead of the clock of this machine.',
    find: ({ seen, now }) => {
      const { iat } = seen.proofClaims;
      if (typeof iat !== 'number' || iat <= now) return undefined;
      return {
        certainty: 'certain',
        fix: 'Set the clock of the client by NTP, or require nonces, which make the clock of the client irrelevant.',
        note: `the proof is from ${formatDuration(iat - now)} ahead`,
      };
    },
  },
  {
    id: 'token_expired',
    reasons: ['expired'],
    meaning: 'The token is older than its lifetime.',
    find: ({ seen: { claims }, now }) => {
      const { exp, iat } = claims;
      if (typeof exp !== 'number' || exp > now) return undefined;
      const lifetime = typeof iat === 'number' && exp > iat ? `; it lived for ${formatDuration(exp - iat)}` : '';
      return {
        certainty: 'certain',
        fix: 'Let the client get a new token before exp, or when it is refused with invalid_token.',
        note: `expired ${formatDuration(now - exp)} ago${lifetime}`,
      };
    },
  },
];
