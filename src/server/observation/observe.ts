import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { readNodeRequest } from '../../adapters/node-request.ts';
import { Refused } from '../../refused.ts';
import { type Answer, createAnswerBatch } from '../http/answer.ts';
import { beginExchange, type Exchange, passedOn, type Refuse, type StreamApp, type Wire } from '../http/exchange.ts';
import { createSendWhole } from '../http/whole-answer.ts';
import type { ExchangeAudit } from './exchange-audit.ts';
import type { Metrics } from './metrics.ts';
import type { WriteRequestLine } from './request-log.ts';
import { registerRequestMetrics } from './request-metrics.ts';
import { endRequestSpan, traceRequest } from './traces.ts';

export interface ObserveOptions {
  readonly app: StreamApp;
  /** Refuses a request before the app receives it. */
  readonly refuse: Refuse;
  readonly metrics: Metrics;
  readonly writeLine: WriteRequestLine;
  readonly audit?: ExchangeAudit | undefined;
  /** Seconds until an idle connection is closed. */
  readonly keepAlive: number;
}

/** A pending request. A class, because each request has one. */
class PendingRequest implements Wire {
  readonly exchange: Exchange;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly takeSocket: Wire['takeSocket'];
  answer: Answer | undefined;
  readonly #record: (exchange: Exchange, status: number) => void;
  readonly #audit: ExchangeAudit | undefined;

  constructor(incoming: IncomingMessage, outgoing: ServerResponse, { takeSocket, record, audit }: PendingOptions) {
    this.exchange = beginExchange(readNodeRequest(incoming), incoming.socket);
    this.incoming = incoming;
    this.outgoing = outgoing;
    this.takeSocket = takeSocket;
    this.answer = undefined;
    this.#record = record;
    this.#audit = audit;
  }

  onForward(): void {
    this.#audit?.add(this.exchange, undefined);
    this.#audit?.write();
  }

  onDone(): void {
    this.#record(this.exchange, readStatus(this.outgoing));
  }
}

interface PendingOptions {
  readonly takeSocket: Wire['takeSocket'];
  readonly record: (exchange: Exchange, status: number) => void;
  readonly audit: ExchangeAudit | undefined;
}

export interface Observed {
  readonly onRequest: RequestListener;
  /** Responds to an `Expect` other than `100-continue`. */
  readonly onExpectation: RequestListener;
  serveUpgrade(incoming: IncomingMessage, outgoing: ServerResponse, takeSocket: NonNullable<Wire['takeSocket']>): void;
  /** Sends the responses that wait for the end of the event-loop iteration: a connection is about to be closed. */
  sendReady(): void;
}

/** Adds sockets, one log line, one span and the request metrics to an app. */
export function observe({ app, refuse, metrics, writeLine, audit, keepAlive }: ObserveOptions): Observed {
  const count = registerRequestMetrics(metrics);
  const sendWhole = createSendWhole(keepAlive);

  const record = (exchange: Exchange, status: number): void => {
    const milliseconds = performance.now() - exchange.startedAt;
    count.end(exchange, status, milliseconds / 1000);
    writeLine(exchange, status, milliseconds);
    endRequestSpan(exchange, status);
  };

  const batch = createAnswerBatch<PendingRequest>((responses) => {
    if (audit !== undefined) {
      for (const { answer, exchange } of responses) audit.add(exchange, answer?.status);
      audit.write();
    }
    for (const { answer, outgoing, exchange } of responses) {
      // A client that reports a refusal can name the id of the log line.
      if (answer !== undefined)
        sendWhole(answer, outgoing, answer.status < 400 && exchange.routeKind === 'route' ? undefined : exchange.id);
    }
    for (const { exchange, answer } of responses) if (answer !== undefined) record(exchange, answer.status);
  });

  const send = (answer: Answer | typeof passedOn, pending: PendingRequest): void => {
    if (answer === passedOn) return;
    pending.answer = answer;
    batch.add(pending);
  };
  type Work = (exchange: Exchange, pending: PendingRequest) => ReturnType<StreamApp>;
  const work: Work = (exchange, pending) => app(exchange, pending.incoming.url ?? '', pending);
  const refuseExpectation: Work = (exchange, { outgoing }) => {
    // The body is not read and may still arrive, so the next request could not be found.
    outgoing.shouldKeepAlive = false;
    return refuse(exchange, new Refused('unmet_expectation'));
  };
  const serve = async (pending: PendingRequest, respond: Work): Promise<void> => {
    count.begin();
    send(await traceRequest(pending.exchange, respond, pending), pending);
  };
  const usual: PendingOptions = { takeSocket: undefined, record, audit };
  return {
    onRequest: (incoming, outgoing) => void serve(new PendingRequest(incoming, outgoing, usual), work),
    onExpectation: (incoming, outgoing) => void serve(new PendingRequest(incoming, outgoing, usual), refuseExpectation),
    serveUpgrade: (incoming, outgoing, takeSocket) =>
      void serve(new PendingRequest(incoming, outgoing, { takeSocket, record, audit }), work),
    sendReady: batch.sendNow,
  };
}

/** nginx's status for a client that disconnects before the response. */
const clientDisconnected = 499;
const switchingProtocols = 101;

function readStatus({ headersSent, statusCode }: ServerResponse): number {
  return headersSent || statusCode === switchingProtocols ? statusCode : clientDisconnected;
}
