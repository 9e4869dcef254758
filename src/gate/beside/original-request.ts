import type { Connection, ResourceRequest } from '../../http/request.ts';
import { Refused } from '../../refused.ts';

export interface OriginalRequest {
  readonly request: ResourceRequest;
  readonly connection: Connection;
}

/** Form of a proxy's subrequest. */
export type Subrequest =
  | 'forward-auth'
  /** `/ext-authz/<path>`: the subrequest has the original method, host and path. */
  | 'ext-authz';

const extAuthzPrefix = '/ext-authz';
// RFC 9110 §9.1, with a limit that every registered method meets.
const methodGrammar = /^[\w!#$%&'*+.^`|~-]{1,64}$/;
// Node joins two lines of one header with a comma and a space, and no URL contains a space.
const targetGrammar = /^\/[\x21-\x7e]*$/;
const hostGrammar = /^[\w~.:[\]-]+$/;

export function readSubrequest(target: string): Subrequest | undefined {
  if (target === '/forward-auth' || target.startsWith('/forward-auth?')) return 'forward-auth';
  return target.startsWith(`${extAuthzPrefix}/`) ? 'ext-authz' : undefined;
}

export function readOriginalRequest(
  kind: Subrequest,
  call: ResourceRequest,
  target: string,
): OriginalRequest | Refused {
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

function malformed(header: string): Refused {
  return new Refused('bad_forwarded_header', { context: { header } });
}

interface OriginalFields {
  readonly method: string;
  readonly target: string;
  /** Default: the `Host` of the subrequest. */
  readonly host?: string;
  readonly encrypted: boolean;
}

function createOriginal(call: ResourceRequest, fields: OriginalFields): OriginalRequest {
  return { request: new OriginalResourceRequest(call, fields), connection: fields.encrypted ? overTls : overTcp };
}

const overTls: Connection = { encrypted: true };
const overTcp: Connection = { encrypted: false };

/** The original request. A class with lazy members, because one exists per request. */
class OriginalResourceRequest implements ResourceRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: ResourceRequest['headers'];
  readonly #call: ResourceRequest;
  readonly #host: string | undefined;
  readonly #encrypted: boolean;

  constructor(call: ResourceRequest, { method, target, host, encrypted }: OriginalFields) {
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
