import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { text } from 'node:stream/consumers';
import { listen } from '../support/listening.ts';
import { createTestCertificates } from '../support/tls.ts';

/** Responds to an introspection request. */
export type AnswerCall = (response: ServerResponse, token: string) => unknown;

/** An introspection endpoint on loopback, over TLS, with configurable responses. */
export interface IntrospectionEndpoint {
  readonly url: string;
  /** PEM of the authority behind its certificate. */
  readonly ca: string;
  /** Calls since the last `answer`. */
  readonly calls: number;
  /** Number of requests for other paths, which must be 0. */
  readonly strays: number;
  /** Sets the following responses. */
  answer(call: AnswerCall): void;
  close(): Promise<void>;
}

/** Starts an endpoint that calls no token active. */
export async function startIntrospectionEndpoint(): Promise<IntrospectionEndpoint> {
  const { ca, cert, key } = await createTestCertificates();
  let answer: AnswerCall = (response) => response.end('{"active":false}');
  let calls = 0;
  let strays = 0;
  const server = createServer({ cert, key }, (request, response) => {
    if (request.url !== '/introspect') {
      strays++;
      response.end('{"active":true}');
      return;
    }
    calls++;
    void text(request).then((form) => answer(response, new URLSearchParams(form).get('token') ?? ''));
  });
  const { port, close } = await listen(server);
  return {
    url: `https://localhost:${port}/introspect`,
    ca,
    get calls() {
      return calls;
    },
    get strays() {
      return strays;
    },
    answer(call) {
      answer = call;
      calls = 0;
    },
    close,
  };
}
