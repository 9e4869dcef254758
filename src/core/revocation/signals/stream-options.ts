import { checkOptionMembers, type OptionMembers } from '../../option-members.ts';
import { isPlainHttps } from '../../outbound/https-address.ts';
import { type SignalName, signalNames, usualSignals } from './signal-names.ts';

/** One stream that a transmitter pushes (Shared Signals Framework 1.0, RFC 8935). It is created at the transmitter. */
export interface StreamOptions {
  /** https URL of the transmitter; its metadata names it as `issuer`. */
  readonly transmitter: string;
  /** Issuer of the access tokens that its events end. */
  readonly issuer: string;
  /** Audience of the stream's security event tokens. */
  readonly audience: string;
  /** Entire value of `Authorization` that the transmitter sends. */
  readonly authorization: string;
  /** Events that set cutoffs. Default: the five that always end a session or an account. */
  readonly events?: readonly SignalName[];
  /** Seconds between two verification events of the transmitter, 1 to 86400. Default: none are expected. */
  readonly verifyEvery?: number;
}

export type Stream = StreamOptions & Required<Pick<StreamOptions, 'events'>> & { readonly name: string };

const members: OptionMembers<StreamOptions> = {
  ...{ transmitter: true, issuer: true, audience: true, authorization: true, events: true, verifyEvery: true },
};
const removedMembers: Readonly<Record<string, string>> = {
  delivery: 'every stream is pushed, so that the transmitter needs the push delivery method of RFC 8935',
  endpoint: 'register the URL of /shared-signals/<name> at the transmitter',
  credentials: 'create the stream at the transmitter',
  onStale: 'alert on portcullis_signals_stream_stale',
};
export const streamNameGrammar = /^[a-z0-9-]{1,64}$/;
export const longestVerifyEvery = 86_400;

/** Returns a problem if a stream has a member that an earlier version had. */
export function findRemovedMember(stream: unknown): string | undefined {
  const name = Object.keys(Object(stream)).find((each) => Object.hasOwn(removedMembers, each));
  return name === undefined ? undefined : `${name} was removed: ${removedMembers[name]}`;
}

/** Reads streams by name. Throws `TypeError` for options that cannot work. */
export function readStreams(streams: Readonly<Record<string, StreamOptions>>): readonly Stream[] {
  const entries = Object.entries(Object(streams) as Readonly<Record<string, StreamOptions>>);
  if (entries.length === 0) throw new TypeError('streams: write at least one stream, by its name');
  return entries.map(([name, options]) => readStream(name, options));
}

function readStream(name: string, options: StreamOptions): Stream {
  const fail = (member: string, fix: string): TypeError => new TypeError(`streams.${name}.${member}: ${fix}`);
  if (!streamNameGrammar.test(name)) throw new TypeError('streams: a name has 1 to 64 of a-z, 0-9 and -');
  const removed = findRemovedMember(options);
  if (removed !== undefined) throw new TypeError(`streams.${name}: ${removed}`);
  checkOptionMembers<StreamOptions>(`streams.${name}`, options, members);
  const { transmitter, events = usualSignals, verifyEvery } = options;
  if (!isPlainHttps(transmitter) || /[?#]/.test(transmitter)) throw fail('transmitter', 'write an https URL');
  for (const [member, fix] of Object.entries(texts) as [keyof typeof texts, string][]) {
    if (typeof options[member] !== 'string' || options[member] === '') throw fail(member, `write the ${fix}`);
  }
  if (!Array.isArray(events) || events.length === 0 || !events.every((each) => signalNames.includes(each))) {
    throw fail('events', `write any of ${signalNames.join(', ')}`);
  }
  const isPeriod =
    Number.isInteger(verifyEvery) && Number(verifyEvery) >= 1 && Number(verifyEvery) <= longestVerifyEvery;
  if (verifyEvery !== undefined && !isPeriod) {
    throw fail('verifyEvery', `write seconds from 1 to ${longestVerifyEvery}`);
  }
  return { ...options, name, events };
}

const texts = {
  issuer: 'issuer of the access tokens',
  audience: 'aud of the security event tokens',
  authorization: 'Authorization value that the transmitter sends',
} as const;
