import { type CallInput, joinHeader } from '../../explain/input/input.ts';
import type { Connection, ResourceRequest } from '../../http/request.ts';

/** Flags that say more about the call than the text does. */
export interface CallFlags {
  readonly method: string | undefined;
  readonly url: string | undefined;
}

const unknownUrl = 'https://localhost/';

/**
 * The call as the service would see it, if it saw the URL that the client called. Forwarded headers of the text count only
 * for a request that was written down at the service: those of a client say nothing.
 */
export function readCall(
  input: CallInput,
  flags: CallFlags,
): { readonly request: ResourceRequest; readonly connection: Connection } {
  const url = flags.url ?? input.url ?? unknownUrl;
  const parsed = new URL(URL.canParse(url) ? url : unknownUrl);
  const isOwnHost = flags.url === undefined && input.kind === 'request';
  const headers = {
    get(name: string): string | null {
      if (name.toLowerCase() === 'host' && !isOwnHost) return parsed.host;
      if (/^x-forwarded-/i.test(name) && !isOwnHost) return null;
      return joinHeader(input.headers, name);
    },
  };
  // Browsers and curl send the path of a URL in its normal form; what was written down at the service is what was sent.
  const target = flags.url !== undefined || input.kind === 'request' ? targetOf(url) : undefined;
  return {
    request: { method: flags.method ?? input.method ?? 'GET', url: parsed.href, headers, target },
    connection: { encrypted: parsed.protocol === 'https:' },
  };
}

/** The path and query as they were written. */
function targetOf(url: string): string | undefined {
  const [, target] = /^https?:\/\/[^/?#]*(\/[^#]*)/i.exec(url) ?? [];
  return target;
}
