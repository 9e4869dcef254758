import type { ExternalUrl } from '../http/external-url.ts';
import type { ResourceRequest } from '../http/request.ts';

/** Request as a resolver gets it: without credentials, so that no token can choose who is trusted. */
export interface IssuerRequest {
  readonly method: string;
  /** As the client called it, proxies that are trusted taken into account; without query and fragment. */
  readonly url: string;
  /** `authorization` and `dpop` are `null`. */
  readonly headers: ResourceRequest['headers'];
}

/** Describes a request without its credentials. */
export function describeRequest({ method, headers }: ResourceRequest, { origin, path }: ExternalUrl): IssuerRequest {
  return {
    method,
    get url() {
      return `${origin}${path}`;
    },
    headers: { get: (name) => (/^(?:authorization|dpop)$/i.test(name) ? null : headers.get(name)) },
  };
}
