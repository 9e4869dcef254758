import type { IncomingMessage } from 'node:http';
import type { Connection, ResourceRequest } from '../http/request.ts';

/**
 * A request of `node:http` as the resource server reads it. Header lines are read as they came: `incoming.headers`
 * would drop a second Authorization or Host without a word. `target` is the request target where a framework has cut
 * something off `incoming.url`.
 */
export function readNodeRequest(incoming: IncomingMessage, target: string = incoming.url ?? '/'): ResourceRequest {
  return new NodeRequest(incoming, target);
}

/** A class because there is one for each request: one object, and nothing is made before it is asked for. */
class NodeRequest implements ResourceRequest {
  readonly method: string;
  readonly headers: ResourceRequest['headers'];
  /** RFC 9112 §3.2: a path, or a URL in full; of anything else there is no resource here. */
  readonly target: string | undefined;
  readonly #incoming: IncomingMessage;
  readonly #sent: string;

  constructor(incoming: IncomingMessage, target: string) {
    this.method = incoming.method ?? '';
    this.headers = this;
    this.target = target.charCodeAt(0) === 0x2f ? target : undefined;
    this.#incoming = incoming;
    this.#sent = target;
  }

  get url(): string {
    if (this.target === undefined) return this.#sent;
    const { encrypted } = this.#incoming.socket as Connection; // a TLS socket says so
    const scheme = encrypted === true ? 'https' : 'http';
    // Only HTTP/1.0 may come without a Host (RFC 9112 §3.2), as the health checks of some load balancers do.
    const { httpVersionMajor: major, httpVersionMinor: minor } = this.#incoming;
    const unnamed = major < 1 || (major === 1 && minor === 0) ? 'localhost' : '';
    return `${scheme}://${this.get('host') ?? unnamed}${this.target}`;
  }

  /** Lines of one name are joined as RFC 9110 §5.3 has it. */
  get(name: string): string | null {
    const wanted = name.toLowerCase();
    return wanted === 'host' && this.#incoming.httpVersionMajor >= 2 ? this.#readHost() : this.#read(wanted);
  }

  /**
   * From HTTP/2 on the host stands in `:authority`, and a Host beside it must say the same (RFC 9113 §8.3.1). If it does
   * not, the two are joined as two lines of Host would be, which is no host.
   */
  #readHost(): string | null {
    const authority = this.#read(':authority');
    const host = this.#read('host');
    if (authority === null || host === null) return authority ?? host;
    return authority.toLowerCase() === host.toLowerCase() ? authority : `${authority}, ${host}`;
  }

  #read(wanted: string): string | null {
    const lines = this.#incoming.rawHeaders;
    let found: string | null = null;
    for (let i = 0; i < lines.length; i += 2) {
      const line = lines[i];
      if (line === undefined || line.length !== wanted.length || line.toLowerCase() !== wanted) continue;
      const value = lines[i + 1] ?? '';
      found = found === null ? value : `${found}, ${value}`;
    }
    return found;
  }
}
