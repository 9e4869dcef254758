import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { readNodeRequest } from '../../adapters/node-request.ts';
import { AccessError } from '../../failures.ts';
import { after } from '../../maybe-promise.ts';
import { type Answer, sendAnswer, withHeaders } from '../app/answer.ts';
import { createAnswerBatch } from '../app/answer-batch.ts';
import { beginExchange, type Exchange } from '../app/exchange.ts';
import type { Refuse } from '../app/refuse.ts';
import { passedOn, type StreamApp, type Wire } from '../app/stream.ts';
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
}

/** An answer that is ready to be sent. */
interface ReadyAnswer {
  readonly exchange: Exchange;
  readonly answer: Answer;
  readonly outgoing: ServerResponse;
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
export function observe({ app, refuse, metrics, writeLine }: ObserveOptions): Observed {
  const count = registerRequestMetrics(metrics);

  const record = (exchange: Exchange, status: number): void => {
    const milliseconds = performance.now() - exchange.startedAt;
    count.end(exchange, status, milliseconds / 1000);
    writeLine(exchange, status, milliseconds);
    endRequestSpan(exchange, status);
  };

  const batch = createAnswerBatch<ReadyAnswer>((answers) => {
    for (const { answer, outgoing } of answers) sendAnswer(answer, outgoing);
    for (const { exchange, answer } of answers) record(exchange, answer.status);
  });

  const serveBy = (
    respond: StreamApp,
    incoming: IncomingMessage,
    { outgoing, takeSocket }: Pick<Wire, 'outgoing' | 'takeSocket'>,
  ): void => {
    const target = incoming.url ?? '';
    const exchange = beginExchange(readNodeRequest(incoming), incoming.socket);
    count.begin();
    const send = (answer: Answer | typeof passedOn): void => {
      if (answer === passedOn) return;
      // Who asks why a call was refused has something to ask with.
      const final = answer.status < 400 ? answer : withHeaders(answer, 'x-request-id', exchange.id);
      batch.add({ exchange, answer: final, outgoing });
    };
    const onDone = (): void => record(exchange, readStatus(outgoing));
    const answer = traceRequest(exchange, () => respond(exchange, target, { incoming, outgoing, takeSocket, onDone }));
    void after(answer, send, undefined);
  };
  const refuseExpectation: StreamApp = (exchange, _target, { outgoing }) => {
    // Nobody reads its body, and it may still come: then the next request could not be found.
    outgoing.shouldKeepAlive = false;
    return refuse(exchange, new AccessError('unmet_expectation'));
  };
  return {
    onRequest: (incoming, outgoing) => serveBy(app, incoming, { outgoing, takeSocket: undefined }),
    onExpectation: (incoming, outgoing) => serveBy(refuseExpectation, incoming, { outgoing, takeSocket: undefined }),
    serveUpgrade: (incoming, outgoing, takeSocket) => serveBy(app, incoming, { outgoing, takeSocket }),
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
