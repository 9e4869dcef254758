import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
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
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo; // it listens on TCP
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
    async close() {
      server.closeAllConnections();
      await once(server.close(), 'close');
    },
  };
}
