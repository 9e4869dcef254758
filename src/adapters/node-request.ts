import type { IncomingMessage } from 'node:http';
import type { Connection, ResourceRequest } from '../core/http/request.ts';
import { refuseOnWorkerd } from '../core/platform.ts';

/** Refuses workerd, whose `node:http` keeps one of several values of a header: a second Authorization would be invisible. */
export function checkNodeHttp(caller: string): void {
  refuseOnWorkerd(caller, 'whose node:http drops header values; take portcullis/fetch or portcullis/hono');
}

/**
 * Converts a request of `node:http`. Header lines are read from `rawHeaders`, because `incoming.headers` silently drops a second
 * Authorization or Host. `target` is the request target, if a framework has removed a prefix from `incoming.url`.
 */
export function readNodeRequest(incoming: IncomingMessage, target: string = incoming.url ?? '/'): ResourceRequest {
  return new NodeRequest(incoming, target);
}

/** Returns the lines that Node has parsed; without any, as with serverless-http on AWS Lambda, the headers of the platform. */
function readLines({ rawHeaders, headers }: IncomingMessage): readonly string[] {
  if (rawHeaders.length > 0) return rawHeaders;
  return Object.entries(headers).flatMap(([name, value = []]) =>
    [value].flat().flatMap((each) => [name, String(each)]),
  );
}

/** A class, because there is one for each request: one object, with members computed on first read. */
class NodeRequest implements ResourceRequest {
  readonly method: string;
  readonly headers: ResourceRequest['headers'];
  /** A path; `undefined` for every other form of request target (RFC 9112 §3.2). */
  readonly target: string | undefined;
  readonly #incoming: IncomingMessage;
  readonly #lines: readonly string[];
  readonly #sent: string;

  constructor(incoming: IncomingMessage, target: string) {
    this.method = incoming.method ?? '';
    this.headers = this;
    this.target = target.charCodeAt(0) === 0x2f ? target : undefined;
    this.#incoming = incoming;
    this.#lines = readLines(incoming);
    this.#sent = target;
  }

  get url(): string {
    if (this.target === undefined) return this.#sent;
    const { encrypted } = this.#incoming.socket as Connection; // set on TLS sockets
    const scheme = encrypted === true ? 'https' : 'http';
    // Only HTTP/1.0 allows an absent Host (RFC 9112 §3.2); health checks of some load balancers omit it.
    const { httpVersionMajor: major, httpVersionMinor: minor } = this.#incoming;
    const unnamed = major < 1 || (major === 1 && minor === 0) ? 'localhost' : '';
    return `${scheme}://${this.get('host') ?? unnamed}${this.target}`;
  }

  *entries(): Iterable<readonly [string, string]> {
    const lines = this.#lines;
    for (let i = 0; i < lines.length; i += 2) yield [String(lines[i]), String(lines[i + 1])];
  }

  /** Joins the lines of one name (RFC 9110 §5.3). */
  get(name: string): string | null {
    const lowered = name.toLowerCase();
    return lowered === 'host' && this.#incoming.httpVersionMajor >= 2 ? this.#readHost() : this.#read(lowered);
  }

  /**
   * HTTP/2 and later have the host in `:authority`, and a Host must equal it (RFC 9113 §8.3.1). If they differ, they are joined
   * like two lines of Host, which is not a valid host.
   */
  #readHost(): string | null {
    const authority = this.#read(':authority');
    const host = this.#read('host');
    if (authority === null || host === null) return authority ?? host;
    return authority.toLowerCase() === host.toLowerCase() ? authority : `${authority}, ${host}`;
  }

  #read(lowered: string): string | null {
    const lines = this.#lines;
    let found: string | null = null;
    for (let i = 0; i < lines.length; i += 2) {
      const line = lines[i];
      if (line === undefined || line.length !== lowered.length || line.toLowerCase() !== lowered) continue;
      const value = lines[i + 1] ?? '';
      found = found === null ? value : `${found}, ${value}`;
    }
    return found;
  }
}

/** Chunks that are held one by one: a client may send chunks of one byte, and each takes much more memory. */
const maxChunks = 64;

/**
 * Reads a body; `undefined` if it has more bytes. The rest is left unread. Rejects if the client disconnects, and with the
 * reason of the signal.
 */
export function readNodeBytes(
  incoming: IncomingMessage,
  maxBytes: number,
  signal?: AbortSignal,
): Promise<Buffer | undefined> {
  if (incoming.readableEnded) return Promise.resolve(Buffer.alloc(0));
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = [];
    let size = 0;
    const take = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > maxBytes) settle(() => resolve(undefined));
      else if (chunks.push(chunk) > maxChunks) chunks = [Buffer.concat(chunks)];
    };
    const finish = (): void => settle(() => resolve(Buffer.concat(chunks)));
    const fail = (): void => settle(() => reject(new Error('The client has disconnected')));
    const abort = (): void => settle(() => reject(signal?.reason));
    const settle = (end: () => void): void => {
      incoming.off('data', take).off('end', finish).off('error', fail).off('close', fail).pause();
      signal?.removeEventListener('abort', abort);
      end();
    };
    if (incoming.destroyed) return fail();
    incoming.on('data', take).on('end', finish).on('error', fail).on('close', fail).resume();
    signal?.addEventListener('abort', abort);
  });
}

/** Reads a body like `readNodeBytes`, as a string; 413 if it has more bytes. */
export async function readNodeBody(incoming: IncomingMessage, maxBytes: number): Promise<string | 413> {
  return (await readNodeBytes(incoming, maxBytes))?.toString('utf8') ?? 413;
}
