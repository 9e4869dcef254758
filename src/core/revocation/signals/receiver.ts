import { attempt } from '../../attempt.ts';
import {
  type EventPost,
  type EventReceiver,
  type EventResponse,
  eventResponse,
  isMediaType,
  onlyPost,
} from '../../http/event-post.ts';
import { isSameSecret } from '../../http/same-secret.ts';
import { callable, checkOptionMembers } from '../../option-members.ts';
import { createOutbound, type OutboundOptions, outboundMembers } from '../../outbound/outbound.ts';
import { requireOwnServer } from '../../resource-server/own-server.ts';
import type { ResourceServer } from '../../resource-server/resource-server.ts';
import type { RegisteredClaims } from '../../token/claims.ts';
import type { RevocationParts } from '../revocations.ts';
import { isError, type OpenStream, openStream, type StreamEvent } from './stream.ts';
import { readStreams, type StreamOptions } from './stream-options.ts';

/** Options of `createSignalsReceiver`. */
export interface SignalsReceiverOptions extends OutboundOptions {
  /** Streams by name. The name is the last segment of `/shared-signals/<name>`. */
  readonly streams: Readonly<Record<string, StreamOptions>>;
  /** Called for each change of a stream. Errors it throws, or rejects with, are ignored. */
  readonly onStreamEvent?: (event: StreamEvent) => unknown;
}

/** Streams of one process, and the endpoint that transmitters push to. */
export type Signals = ReturnType<typeof openSignals>;

const prefix = '/shared-signals/';
const maxSignalBytes = 64 * 1024;

const accepted = eventResponse(202);
const unknownStream = eventResponse(404);
const unavailable = eventResponse(503, undefined, { 'retry-after': '5' });
const refuse = (err: string, description: string): EventResponse => eventResponse(400, { err, description });
const unauthenticated = refuse('authentication_failed', 'The Authorization header is not valid.');

/** Opens the streams. Throws `TypeError` for options that cannot work. */
export function openSignals(
  options: SignalsReceiverOptions,
  revocations: RevocationParts,
  now: () => number = () => Date.now() / 1000,
) {
  checkOptionMembers<SignalsReceiverOptions>('createSignalsReceiver', options, {
    ...{ streams: true, onStreamEvent: callable },
    ...outboundMembers,
  });
  const { streams: written, onStreamEvent, ...keyOptions } = options;
  const read = readStreams(written);
  const outbound = createOutbound(keyOptions);
  const emit = (event: StreamEvent): void => void attempt(onStreamEvent, event);
  const streams = read.map((stream) => openStream(stream, { revocations, outbound, keyOptions, emit, now }));

  const push = async (
    { options: stream, receive }: OpenStream,
    { request, readBody }: EventPost,
  ): Promise<EventResponse> => {
    if (!isSameSecret(request.headers.get('authorization') ?? '', stream.authorization)) return unauthenticated;
    if (!isMediaType(request.headers.get('content-type'), 'application/secevent+jwt')) {
      return refuse('invalid_request', 'The content type is not application/secevent+jwt.');
    }
    const body = await readBody(maxSignalBytes);
    if (body === 408) return eventResponse(408);
    if (body === 413) return refuse('invalid_request', 'The security event token is too large.');
    const outcome = await receive(body);
    if (outcome === 'not_ready') return unavailable;
    return isError(outcome) ? refuse(outcome, 'The security event token is not valid.') : accepted;
  };

  const receiver: EventReceiver = {
    route: `${prefix}<stream>`,
    serves: (path) => path.startsWith(prefix),
    async respond(post, path) {
      const stream = streams.find(({ options: { name } }) => path === prefix + name);
      if (stream === undefined) return unknownStream;
      if (post.request.method !== 'POST') return onlyPost;
      // A store that failed: the transmitter sends the event again.
      return push(stream, post).catch(() => unavailable);
    },
  };
  const close = (): void => {
    for (const stream of streams) stream.close();
    outbound.close();
  };
  return { ...receiver, streams, close };
}

/** Opens the streams of a resource server. Throws `TypeError` for options that cannot work and a server without `revocations`. */
export function openSignalsReceiver(
  server: ResourceServer<RegisteredClaims>,
  options: SignalsReceiverOptions,
): Signals {
  const { revocations, now } = requireOwnServer('createSignalsReceiver', server);
  if (revocations === undefined) {
    throw new TypeError('createSignalsReceiver: the server has no revocations; write createRevocations()');
  }
  return openSignals(options, revocations, now);
}
