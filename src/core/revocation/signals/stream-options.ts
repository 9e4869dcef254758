import { checkOptionMembers, isText, isWithin, type OptionMembers } from '../../option-members.ts';
import { isPlainHttps } from '../../outbound/https-address.ts';
import type { CutoffEvent } from '../record.ts';

/** Short names of events that set cutoffs. */
export type SignalName = Exclude<CutoffEvent, 'revoke' | 'logout'>;

const base = 'https://schemas.openid.net/secevent';
const caep = `${base}/caep/event-type/`;
const risc = `${base}/risc/event-type/`;

/** Names of event types (CAEP 1.0, RISC 1.0), by short name. */
export const signalTypes: Readonly<Record<SignalName, string>> = {
  'session-revoked': `${caep}session-revoked`,
  'account-disabled': `${risc}account-disabled`,
  'account-purged': `${risc}account-purged`,
  'credential-compromise': `${risc}credential-compromise`,
  'sessions-revoked': `${risc}sessions-revoked`,
  'credential-change': `${caep}credential-change`,
  'token-claims-change': `${caep}token-claims-change`,
  'assurance-level-change': `${caep}assurance-level-change`,
};

export const signalNames = Object.keys(signalTypes) as readonly SignalName[]; // the keys are the names

/** Events after which no session of the user is left. */
export const usualSignals: readonly SignalName[] = signalNames.slice(0, 5);

export const signalOfType: ReadonlyMap<string, SignalName> = new Map(
  signalNames.map((name) => [signalTypes[name], name]),
);

export const verificationType = `${base}/ssf/event-type/verification`;

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

export const longestVerifyEvery = 86_400;
const isPeriod = isWithin(1, longestVerifyEvery);
const members: OptionMembers<StreamOptions> = {
  transmitter: [(value) => isPlainHttps(value) && !/[?#]/.test(value), 'write an https URL', 'required'],
  issuer: [isText, 'write the issuer of the access tokens', 'required'],
  audience: [isText, 'write the aud of the security event tokens', 'required'],
  authorization: [isText, 'write the Authorization value that the transmitter sends', 'required'],
  events: [
    (value) => Array.isArray(value) && value.length > 0 && value.every((each) => signalNames.includes(each)),
    `write any of ${signalNames.join(', ')}`,
  ],
  verifyEvery: [(value) => Number.isInteger(value) && isPeriod(value), `write seconds from 1 to ${longestVerifyEvery}`],
};
const removedMembers: Readonly<Record<string, string>> = {
  delivery: 'every stream is pushed, so that the transmitter needs the push delivery method of RFC 8935',
  endpoint: 'register the URL of /shared-signals/<name> at the transmitter',
  credentials: 'create the stream at the transmitter',
  onStale: 'alert on portcullis_signals_stream_stale',
};
export const streamNameGrammar = /^[a-z0-9-]{1,64}$/;

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
  if (!streamNameGrammar.test(name)) throw new TypeError('streams: a name has 1 to 64 of a-z, 0-9 and -');
  const removed = findRemovedMember(options);
  if (removed !== undefined) throw new TypeError(`streams.${name}: ${removed}`);
  checkOptionMembers<StreamOptions>(`streams.${name}`, options, members, `streams.${name}.`);
  const { events = usualSignals } = options;
  return { ...options, name, events };
}
