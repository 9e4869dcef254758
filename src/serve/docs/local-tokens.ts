import { parseTrust } from '../../http/external-url.ts';
import type { ResourceRequest } from '../../http/request.ts';
import type { ErrorBodyFormat } from '../../refusal/error-body.ts';
import { type Answer, createAnswer, plainError } from '../../server/http/answer.ts';
import { type AppRoute, type FindLocalTokens, json } from '../app-route.ts';

export const localTokensPath = '/docs/token';

const isLoopback = parseTrust(['127.0.0.0/8', '::1']);
const loopbackHost = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;
const jktForm = /^[\w-]{43}$/;

/** Serves tokens to the documentation page: only to this page, and only on this host. */
export function localTokensRoute(issuer: string, find: FindLocalTokens, errorBody: ErrorBodyFormat): AppRoute {
  const notFound = plainError(errorBody, 404);
  // Browsers report a 404 as an error of the page.
  const absent = createAnswer(204, [], '');
  return {
    path: localTokensPath,
    async respond({ request, connection }) {
      if (!isLoopback(connection.remoteAddress) || !isFromPage(request)) return notFound;
      const local = await find(issuer);
      if (local === undefined) return absent;
      const console = local.admin === undefined ? undefined : new URL('/console', local.admin).href;
      const parameters = new URL(request.url).searchParams;
      const [scope, jkt = ''] = [parameters.get('scope'), parameters.get('jkt') ?? undefined];
      const token = scope === null ? undefined : await local.token({ scope, ...(jktForm.test(jkt) && { jkt }) });
      return answer({ console, token });
    },
  };
}

function answer(value: object): Answer {
  return createAnswer(200, [...json, 'cache-control', 'no-store'], JSON.stringify(value));
}

/** Other pages, also under a name that resolves to this host, and proxies get no token. */
function isFromPage({ headers }: ResourceRequest): boolean {
  const isProxied = ['forwarded', 'x-forwarded-for', 'x-forwarded-host'].some((name) => headers.get(name) !== null);
  return !isProxied && headers.get('sec-fetch-site') === 'same-origin' && loopbackHost.test(headers.get('host') ?? '');
}
