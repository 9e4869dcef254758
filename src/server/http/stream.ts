import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { MaybePromise } from '../../maybe-promise.ts';
import type { Answer } from './answer.ts';
import type { Exchange } from './exchange.ts';

/** A client's connection for another protocol, and the bytes that followed the request. */
export interface TakenSocket {
  readonly socket: Socket;
  readonly head: Buffer;
}

/** What an app needs that does not answer by itself: the request and the answer as streams. */
export interface Wire {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  /** Present if the client asks for an upgrade. */
  readonly takeSocket: (() => TakenSocket) | undefined;
  /** Tells that nothing more will be sent. */
  onDone(): void;
}

/** Says that somebody else answers, and calls `onDone`. */
export const passedOn = Symbol('passed on');

/** Answers a request; a promise only where something has to be waited for. Throws nothing. */
export type App = (exchange: Exchange, target: string) => MaybePromise<Answer>;

/** Answers a request, or has it answered. Throws nothing. */
export type StreamApp = (
  exchange: Exchange,
  target: string,
  wire: Wire,
) => Answer | typeof passedOn | Promise<Answer | typeof passedOn>;
