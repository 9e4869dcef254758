import { checkOptionMembers, type OptionMembers } from '../../option-members.ts';
import { isPlainHttps } from '../../outbound/https-address.ts';
import { type SignalName, signalNames, usualSignals } from './signal-names.ts';

/** Access to the transmitter's own endpoints. */
export type TransmitterCredentials =
  /** A token, or a function that returns the current one. */
  | { readonly token: string | (() => string) }
  /** Client credentials (RFC 6749 §4.4). */
  | {
      readonly tokenEndpoint: string;
      readonly clientId: string;
      readonly clientSecret: string;
      readonly scope?: string | undefined;
    };

/** One stream of a transmitter (Shared Signals Framework 1.0). */
export interface StreamOptions {
  /** https URL of the transmitter; its metadata names it as `issuer`. */
  readonly transmitter: string;
  /** Issuer of the access tokens that its events end. */
  readonly issuer: string;
  /** `push`: the transmitter sends events; `poll`: they are fetched. */
  readonly delivery: 'push' | 'poll';
  /** Push: https URL that the transmitter calls. */
  readonly endpoint?: string;
  /** Push: the entire value of `Authorization` that the transmitter sends. */
  readonly authorization?: string;
  /** Events that set cutoffs. Default: the five that always end a session or an account. */
  readonly events?: readonly SignalName[];
  readonly credentials?: TransmitterCredentials;
  /** Seconds between two verifications, 1 to 86400. Default 300. */
  readonly verifyEvery?: number;
  /** Treatment of the issuer's tokens while the stream is stale. Default `accept`. */
  readonly onStale?: 'accept' | 'refuse';
}

export type Stream = Required<Omit<StreamOptions, 'credentials' | 'endpoint' | 'authorization'>> &
  Pick<StreamOptions, 'credentials' | 'endpoint' | 'authorization'> & { readonly name: string };

const members: OptionMembers<StreamOptions> = {
  ...{ transmitter: true, issuer: true, delivery: true, endpoint: true, authorization: true, events: true },
  ...{ credentials: true, verifyEvery: true, onStale: true },
};
export const streamNameGrammar = /^[a-z0-9-]{1,64}$/;
export const longestVerifyEvery = 86_400;

/** Reads streams by name. Throws `TypeError` for options that cannot work. */
export function readStreams(streams: Readonly<Record<string, StreamOptions>>): readonly Stream[] {
  const entries = Object.entries(Object(streams) as Readonly<Record<string, StreamOptions>>);
  if (entries.length === 0) throw new TypeError('streams: write at least one stream, by its name');
  return entries.map(([name, options]) => readStream(name, options));
}

function readStream(name: string, options: StreamOptions): Stream {
  const fail = (member: string, fix: string): TypeError => new TypeError(`streams.${name}.${member}: ${fix}`);
  if (!streamNameGrammar.test(name)) throw new TypeError('streams: a name has 1 to 64 of a-z, 0-9 and -');
  checkOptionMembers<StreamOptions>(`streams.${name}`, options, members);
  const { transmitter, issuer, delivery, endpoint, authorization, events = usualSignals } = options;
  const { verifyEvery = 300, onStale = 'accept' } = options;
  if (!isPlainHttps(transmitter) || /[?#]/.test(transmitter)) throw fail('transmitter', 'write an https URL');
  if (typeof issuer !== 'string' || issuer === '') throw fail('issuer', 'write the issuer of the access tokens');
  if (delivery !== 'push' && delivery !== 'poll') throw fail('delivery', 'write push or poll');
  if (delivery === 'push' && !isPlainHttps(endpoint))
    throw fail('endpoint', 'write the https URL that the transmitter calls');
  if (delivery === 'push' && (typeof authorization !== 'string' || authorization === '')) {
    throw fail('authorization', 'write the Authorization value that the transmitter sends');
  }
  if (!Array.isArray(events) || events.length === 0 || !events.every((each) => signalNames.includes(each))) {
    throw fail('events', `write any of ${signalNames.join(', ')}`);
  }
  if (!(Number.isInteger(verifyEvery) && verifyEvery >= 1 && verifyEvery <= longestVerifyEvery)) {
    throw fail('verifyEvery', `write seconds from 1 to ${longestVerifyEvery}`);
  }
  if (onStale !== 'accept' && onStale !== 'refuse') throw fail('onStale', 'write accept or refuse');
  return { ...options, name, events, verifyEvery, onStale };
}
