import type { Connection, ResourceRequest } from '../../core/http/request.ts';
import { type CallInput, joinHeader } from './input.ts';

export type ReceivedCall = ReturnType<typeof readCall>;

const unknownUrl = 'https://localhost/';

/**
 * The request as a service with this URL receives it. Forwarded headers count only for a request that was recorded at the
 * service; a client does not send them.
 */
export function readCall(
  input: CallInput,
  flags: { readonly method?: string | undefined; readonly url?: string | undefined } = {},
) {
  const url = flags.url ?? input.url ?? unknownUrl;
  const parsed = new URL(URL.canParse(url) ? url : unknownUrl);
  const isOfFlag = flags.url !== undefined && input.url !== undefined;
  const isRecorded = flags.url === undefined && input.kind === 'request';
  const headers = {
    get(name: string): string | null {
      if (name.toLowerCase() === 'host') return (isOfFlag ? null : joinHeader(input.headers, name)) ?? parsed.host;
      if (/^x-forwarded-/i.test(name) && !isRecorded) return null;
      return joinHeader(input.headers, name);
    },
    entries: () => input.headers,
  };
  // Browsers and curl normalise the path of a URL. A request that was recorded at the service has the sent path.
  const target =
    flags.url !== undefined || input.kind === 'request' || input.isPathAsIs === true
      ? targetOf(url, isRecorded)
      : undefined;
  const method = flags.method ?? input.method ?? 'GET';
  const request: ResourceRequest = { method, url: parsed.href, headers, target };
  const connection: Connection = { encrypted: parsed.protocol === 'https:' };
  return {
    ...{ request, connection, body: input.body },
    /** The URL as written. */
    url,
    /** False if neither the input nor a flag has a URL. */
    hasUrl: url !== unknownUrl,
    /** Names and values of the headers, alternately. */
    rawHeaders: input.headers.flat(),
  };
}

/** The path and query, unchanged. A client does not send the fragment; in a recorded request it is a part of the path. */
function targetOf(url: string, isRecorded: boolean): string | undefined {
  const [, target] = /^https?:\/\/[^/?#]*(\/.*)/i.exec(url) ?? [];
  return isRecorded ? target : target?.replace(/#.*/, '');
}
