import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { listen } from '../support/listening.ts';
import { createTestCertificates } from '../support/tls.ts';

/** Responds to a GET. */
export type AnswerGet = (response: ServerResponse) => unknown;

/** A provider on loopback, over TLS, with configurable documents. */
export interface DocumentServer {
  /** `https://localhost:<port>/`. */
  readonly issuer: string;
  /** PEM of the authority behind its certificate. */
  readonly ca: string;
  /** Calls of paths that have no document since the last `serve`. */
  readonly strays: number;
  /** Serves these documents by path, and 404 for other paths. */
  serve(documents: Readonly<Record<string, AnswerGet>>): void;
  close(): Promise<void>;
}

/** Starts a provider without documents. */
export async function startDocumentServer(): Promise<DocumentServer> {
  const { ca, cert, key } = await createTestCertificates();
  let documents: ReadonlyMap<string, AnswerGet> = new Map();
  let strays = 0;
  const server = createServer({ cert, key }, ({ url = '' }, response) => {
    const answer = documents.get(url);
    // The location of the keys without discovery.
    if (answer === undefined && url !== '/.well-known/jwks.json') strays++;
    if (answer === undefined) response.writeHead(404).end('{}');
    else answer(response);
  });
  const { port, close } = await listen(server);
  return {
    issuer: `https://localhost:${port}/`,
    ca,
    get strays() {
      return strays;
    },
    serve(served) {
      documents = new Map(Object.entries(served));
      strays = 0;
    },
    close,
  };
}
