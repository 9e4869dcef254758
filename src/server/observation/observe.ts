import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { readNodeRequest } from '../../adapters/node-request.ts';
import { AccessError } from '../../failures.ts';
import { after } from '../../maybe-promise.ts';
import type { Answer } from '../http/answer.ts';
import { createAnswerBatch } from '../http/answer-batch.ts';
import { beginExchange, type Exchange } from '../http/exchange.ts';
import type { Refuse } from '../http/refuse.ts';
import { passedOn, type StreamApp, type Wire } from '../http/stream.ts';
import { createSendWhole } from '../http/whole-answer.ts';
import type { Metrics } from './metrics.ts';
import type { WriteRequestLine } from './request-log.ts';
import { registerRequestMetrics } from './request-metrics.ts';
import { endRequestSpan, traceRequest } from './traces.ts';

/** What is put around the app. */
export interface ObserveOptions {
  readonly app: StreamApp;
  /** Answers a request that the app is not asked about. */
  readonly refuse: Refuse;
  readonly metrics: Metrics;
  readonly writeLine: WriteRequestLine;
  /** Seconds that an idle connection is kept. */
  readonly keepAlive: number;
}

/** A request on its way. A class because there is one for each request. */
class Call implements Wire {
  readonly exchange: Exchange;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly takeSocket: Wire['takeSocket'];
  /** Once it is ready to be sent. */
  answer: Answer | undefined;
  readonly #record: (exchange: Exchange, status: number) => void;

  constructor(incoming: IncomingMessage, outgoing: ServerResponse, { takeSocket, record }: CallOptions) {
    this.exchange = beginExchange(readNodeRequest(incoming), incoming.socket);
    this.incoming = incoming;
    this.outgoing = outgoing;
    this.takeSocket = takeSocket;
    this.answer = undefined;
    this.#record = record;
  }

  onDone(): void {
    this.#record(this.exchange, readStatus(this.outgoing));
  }
}

interface CallOptions {
  readonly takeSocket: Wire['takeSocket'];
  readonly record: (exchange: Exchange, status: number) => void;
}

/** An app with sockets around it. */
export interface Observed {
  readonly onRequest: RequestListener;
  /** For a request that expects what no server can promise. */
  readonly onExpectation: RequestListener;
  /** For an app that passes on what it is asked. */
  serveUpgrade(incoming: IncomingMessage, outgoing: ServerResponse, takeSocket: NonNullable<Wire['takeSocket']>): void;
  /** Sends the answers that wait for the end of the turn: a connection is about to be closed. */
  sendReady(): void;
}

/** Puts sockets, one log line, one span and the request metrics around an app. */
export function observe({ app, refuse, metrics, writeLine, keepAlive }: ObserveOptions): Observed {
  const count = registerRequestMetrics(metrics);
  const sendWhole = createSendWhole(keepAlive);

  const record = (exchange: Exchange, status: number): void => {
    const milliseconds = performance.now() - exchange.startedAt;
    count.end(exchange, status, milliseconds / 1000);
    writeLine(exchange, status, milliseconds);
    endRequestSpan(exchange, status);
  };

  const batch = createAnswerBatch<Call>((calls) => {
    for (const { answer, outgoing, exchange } of calls) {
      // Who asks why a call was refused has something to ask with.
      if (answer !== undefined) sendWhole(answer, outgoing, answer.status < 400 ? undefined : exchange.id);
    }
    for (const { exchange, answer } of calls) if (answer !== undefined) record(exchange, answer.status);
  });

  const send = (answer: Answer | typeof passedOn, call: Call): void => {
    if (answer === passedOn) return;
    call.answer = answer;
    batch.add(call);
  };
  type Work = (exchange: Exchange, call: Call) => ReturnType<StreamApp>;
  const work: Work = (exchange, call) => app(exchange, call.incoming.url ?? '', call);
  const refuseExpectation: Work = (exchange, { outgoing }) => {
    // Nobody reads its body, and it may still come: then the next request could not be found.
    outgoing.shouldKeepAlive = false;
    return refuse(exchange, new AccessError('unmet_expectation'));
  };
  const serve = (call: Call, respond: Work): void => {
    count.begin();
    void after(traceRequest(call.exchange, respond, call), send, call);
  };
  const usual: CallOptions = { takeSocket: undefined, record };
  return {
    onRequest: (incoming, outgoing) => serve(new Call(incoming, outgoing, usual), work),
    onExpectation: (incoming, outgoing) => serve(new Call(incoming, outgoing, usual), refuseExpectation),
    serveUpgrade: (incoming, outgoing, takeSocket) => serve(new Call(incoming, outgoing, { takeSocket, record }), work),
    sendReady: batch.sendNow,
  };
}

/** What nginx writes if the client has gone before there was an answer. */
const clientGone = 499;
const switchingProtocols = 101;

/** The status that the client got. */
function readStatus({ headersSent, statusCode }: ServerResponse): number {
  return headersSent || statusCode === switchingProtocols ? statusCode : clientGone;
}
