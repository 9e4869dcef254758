import type { RequestListener, ServerResponse } from 'node:http';
import { readNodeRequest } from '../../adapters/node-request.ts';
import type { Reason } from '../../failures.ts';
import { after } from '../../maybe-promise.ts';
import { type Answer, sendAnswer, withHeaders } from '../app/answer.ts';
import { createAnswerBatch } from '../app/answer-batch.ts';
import type { App } from '../app/app.ts';
import { beginExchange, type Exchange } from '../app/exchange.ts';
import type { Log } from './log.ts';
import type { Counter, Metrics, Series } from './metrics.ts';

/** What is put around the app. */
export interface ObserveOptions {
  readonly app: App;
  readonly log: Log;
  readonly metrics: Metrics;
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
  /** Sends the answers that wait for the end of the turn: a connection is about to be closed. */
  sendReady(): void;
}

/** Puts sockets, one log line and the request metrics around an app. */
export function observe({ app, log, metrics }: ObserveOptions): Observed {
  const requests = metrics.counter('portcullis_requests_total', 'Requests by route and status.');
  const refusals = metrics.counter('portcullis_refusals_total', 'Refused requests by reason.');
  const latency = metrics.histogram('portcullis_request_seconds', 'Time from request to answer.');
  const countRequest = createRequestCount(requests);
  const countRefusal = createRefusalCount(refusals);

  const record = ({ exchange, answer: { status } }: ReadyAnswer): void => {
    const { route, reason } = exchange;
    const milliseconds = performance.now() - exchange.startedAt;
    countRequest(route, status).value++;
    latency.observe(milliseconds / 1000);
    if (reason !== undefined) countRefusal(reason).value++;
    log.writeRequest(exchange, status, milliseconds);
  };

  const batch = createAnswerBatch<ReadyAnswer>((answers) => {
    for (const { answer, outgoing } of answers) sendAnswer(answer, outgoing);
    for (const each of answers) record(each);
  });

  const onRequest: RequestListener = (incoming, outgoing) => {
    const target = incoming.url ?? '';
    const exchange = beginExchange(readNodeRequest(incoming), incoming.socket);
    const send = (answer: Answer): void => {
      // Who asks why a call was refused has something to ask with.
      const final = answer.status < 400 ? answer : withHeaders(answer, 'x-request-id', exchange.id);
      batch.add({ exchange, answer: final, outgoing });
    };
    void after(app(exchange, target), send, undefined);
  };
  return { onRequest, sendReady: batch.sendNow };
}

/** The series of a route and status, found without making a text of them. */
function createRequestCount(counter: Counter): (route: string, status: number) => Series {
  const known = new Map<string, Map<number, Series>>();
  return (route, status) => {
    const found = known.get(route)?.get(status);
    if (found !== undefined) return found;
    const series = counter.series(`{route="${route}",status="${status}"}`);
    known.set(route, new Map(known.get(route)).set(status, series));
    return series;
  };
}

function createRefusalCount(counter: Counter): (reason: Reason) => Series {
  const known = new Map<Reason, Series>();
  return (reason) => {
    const series = known.get(reason) ?? counter.series(`{reason="${reason}"}`);
    known.set(reason, series);
    return series;
  };
}
