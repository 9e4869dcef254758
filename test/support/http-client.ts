import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { connect } from 'node:net';

/** One request, with control over what a well-behaved client library would tidy up. */
export interface RequestOptions {
  /** Default GET. */
  readonly method?: string;
  /** Names and values in turn: a name may come twice. A `Host` among them takes the place of the usual one. */
  readonly headers?: readonly string[];
  /** Sent with its length. */
  readonly body?: string;
  /** PEM of the authority behind an https origin. */
  readonly ca?: string;
}

/** A response. */
export type Answer = ReturnType<typeof toAnswer>;

/** Sends a request on a new connection; the path is sent unchanged. Rejects if the connection breaks. */
export function send(origin: string, path: string, options: RequestOptions = {}): Promise<Answer> {
  const { method = 'GET', headers = [], body, ca } = options;
  const { protocol, hostname, port, host } = new URL(origin);
  const request = protocol === 'https:' ? requestHttps : requestHttp;
  // Edges listen on 127.0.0.1 alone.
  const edge = ca === undefined ? {} : { ca, family: 4 };
  const all = [
    ...(headers.some((name, index) => index % 2 === 0 && name.toLowerCase() === 'host') ? [] : ['Host', host]),
    ...headers,
    ...(body === undefined ? [] : ['Content-Length', String(Buffer.byteLength(body))]),
  ];
  return new Promise((resolve, reject) => {
    const outgoing = request({ hostname, port, path, method, headers: all, agent: false, ...edge }, (response) => {
      let received = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        received += chunk;
      });
      response.on('error', reject);
      response.on('end', () => resolve(toAnswer(response, received)));
    });
    outgoing.on('error', reject).end(body);
  });
}

function toAnswer({ statusCode: status = 0, statusMessage = '', rawHeaders }: IncomingMessage, body: string) {
  const headers = new Map<string, string>();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? '').toLowerCase();
    const before = headers.get(name);
    headers.set(name, `${before === undefined ? '' : `${before}, `}${rawHeaders[i + 1] ?? ''}`);
  }
  return {
    status,
    /** Headers by lower-case name; duplicates are joined with a comma. */
    headers: headers as ReadonlyMap<string, string>,
    body,
    /** The body as JSON. */
    get json(): unknown {
      return JSON.parse(body);
    },
    /** Status line, headers and body as text: for what must not be in any of them. */
    text: `${status} ${statusMessage}\n${rawHeaders.join('\n')}\n${body}`,
  };
}

/** A connection that sends raw bytes. */
export type RawConnection = ReturnType<typeof openRaw>;

/** Opens a raw connection to a loopback port; what is written before it is open waits. */
export function openRaw(port: number) {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  let received = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    received += chunk;
  });
  const closed = new Promise<string>((resolve) => {
    // The other side ends with a FIN, or with a reset where it drops what it has not read.
    socket.on('error', () => resolve(received));
    socket.on('end', () => {
      socket.end();
      resolve(received);
    });
    socket.on('close', () => resolve(received));
  });
  return {
    write: (bytes: string) => void socket.write(bytes, 'latin1'),
    /** Settles with everything that was received when the other side has closed. */
    closed,
    /** Resolves when what was received matches; rejects where it never will. */
    receive: (pattern: RegExp) =>
      new Promise<string>((resolve, reject) => {
        const look = (): void => {
          if (!pattern.test(received)) return;
          socket.off('data', look);
          resolve(received);
        };
        socket.on('data', look);
        look();
        void closed.then(() => reject(new Error(`Closed after:\n${received}`)));
      }),
    destroy: () => void socket.destroy(),
  };
}

/** Sends bytes to a loopback port and resolves with all that comes back until the other side closes. */
export async function exchange(port: number, bytes: string): Promise<string> {
  const connection = openRaw(port);
  connection.write(bytes);
  return connection.closed;
}

/** The status codes in what a raw connection received, in order. */
export function readStatuses(received: string): readonly number[] {
  return [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
}
