import { AccessError } from '../../failures.ts';
import type { Connection, ResourceRequest } from '../../http/request.ts';

/** The request that a proxy asks about, and the connection that the client has to the proxy. */
export interface OriginalRequest {
  readonly request: ResourceRequest;
  readonly connection: Connection;
}

/** Where the gate is asked for a decision, and how the original request is told. */
export type Subrequest =
  /** `/forward-auth`: all of it is in headers. */
  | 'forward-auth'
  /** `/ext-authz/<path>`: method, host and path are those of the call itself. */
  | 'ext-authz';

const extAuthzPrefix = '/ext-authz';
// RFC 9110 §9.1, and shorter than any method there is.
const methodGrammar = /^[\w!#$%&'*+.^`|~-]{1,64}$/;
// Two lines of one header are joined with a comma and a space, and no URL has a space.
const targetGrammar = /^\/[\x21-\x7e]*$/;
const hostGrammar = /^[\w~.:[\]-]+$/;

/** Which kind of question a request target is; `undefined` for neither. */
export function readSubrequest(target: string): Subrequest | undefined {
  if (target === '/forward-auth' || target.startsWith('/forward-auth?')) return 'forward-auth';
  return target.startsWith(`${extAuthzPrefix}/`) ? 'ext-authz' : undefined;
}

/** Reads the original request. Nothing of the call that carries it has a say, but for what its kind tells. */
export function readOriginalRequest(
  kind: Subrequest,
  call: ResourceRequest,
  target: string,
): OriginalRequest | AccessError {
  const { headers } = call;
  const scheme = headers.get('x-forwarded-proto');
  if (scheme !== 'http' && scheme !== 'https') return malformed('X-Forwarded-Proto');
  const encrypted = scheme === 'https';
  if (kind === 'ext-authz') {
    return createOriginal(call, { method: call.method, target: target.slice(extAuthzPrefix.length), encrypted });
  }
  const method = headers.get('x-forwarded-method');
  if (method === null || !methodGrammar.test(method)) return malformed('X-Forwarded-Method');
  const host = headers.get('x-forwarded-host');
  if (host === null || !hostGrammar.test(host)) return malformed('X-Forwarded-Host');
  const path = headers.get('x-forwarded-uri');
  if (path === null || !targetGrammar.test(path)) return malformed('X-Forwarded-Uri');
  return createOriginal(call, { method, target: path, host, encrypted });
}

function malformed(header: string): AccessError {
  return new AccessError('bad_forwarded_header', { context: { header } });
}

interface Told {
  readonly method: string;
  readonly target: string;
  /** Default: the `Host` of the call. */
  readonly host?: string;
  readonly encrypted: boolean;
}

function createOriginal(call: ResourceRequest, told: Told): OriginalRequest {
  return { request: new ToldRequest(call, told), connection: told.encrypted ? overTls : overTcp };
}

const overTls: Connection = { encrypted: true };
const overTcp: Connection = { encrypted: false };

/** A class because there is one for each request: nothing is made before it is asked for. */
class ToldRequest implements ResourceRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: ResourceRequest['headers'];
  readonly #call: ResourceRequest;
  readonly #host: string | undefined;
  readonly #encrypted: boolean;

  constructor(call: ResourceRequest, { method, target, host, encrypted }: Told) {
    this.method = method;
    this.target = target;
    this.headers = this;
    this.#call = call;
    this.#host = host;
    this.#encrypted = encrypted;
  }

  get url(): string {
    return `${this.#encrypted ? 'https' : 'http'}://${this.get('host') ?? ''}${this.target}`;
  }

  get(name: string): string | null {
    const host = this.#host;
    return host !== undefined && name.length === 4 && name.toLowerCase() === 'host'
      ? host
      : this.#call.headers.get(name);
  }
}
