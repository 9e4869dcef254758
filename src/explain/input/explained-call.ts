import type { Connection, ResourceRequest } from '../../core/http/request.ts';
import { type CallInput, joinHeader } from './input.ts';

export interface CallFlags {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
}

export interface ReceivedCall {
  readonly request: ResourceRequest;
  /** False if neither the input nor a flag has a URL. */
  readonly hasUrl: boolean;
  readonly connection: Connection;
  /** Names and values of the headers, alternately. */
  readonly rawHeaders: readonly string[];
  /** `undefined` if the input has no body. */
  readonly body: string | undefined;
}

const unknownUrl = 'https://localhost/';

/**
 * The request as a service with this URL receives it. Forwarded headers count only for a request that was recorded at the
 * service; a client does not send them.
 */
export function readCall(input: CallInput, flags: CallFlags = {}): ReceivedCall {
  const url = flags.url ?? input.url ?? unknownUrl;
  const parsed = new URL(URL.canParse(url) ? url : unknownUrl);
  const isOwnHost = flags.url === undefined && input.kind === 'request';
  const headers = {
    get(name: string): string | null {
      if (name.toLowerCase() === 'host' && !isOwnHost) return parsed.host;
      if (/^x-forwarded-/i.test(name) && !isOwnHost) return null;
      return joinHeader(input.headers, name);
    },
    entries: () => input.headers,
  };
  // Browsers and curl normalise the path of a URL. A request that was recorded at the service has the sent path.
  const target =
    flags.url !== undefined || input.kind === 'request' || input.isPathAsIs === true ? targetOf(url) : undefined;
  return {
    request: { method: flags.method ?? input.method ?? 'GET', url: parsed.href, headers, target },
    hasUrl: url !== unknownUrl,
    connection: { encrypted: parsed.protocol === 'https:' },
    rawHeaders: input.headers.flat(),
    body: input.body,
  };
}

/** The path and query, unchanged. */
function targetOf(url: string): string | undefined {
  const [, target] = /^https?:\/\/[^/?#]*(\/[^#]*)/i.exec(url) ?? [];
  return target;
}
