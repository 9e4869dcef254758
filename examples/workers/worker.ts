import { createResourceServer } from 'portcullis';
import { createProtect } from 'portcullis/fetch';

interface Env {
  readonly ISSUER: string;
  readonly AUDIENCE: string;
  /** A JWK set, for the local provider: workerd does not trust its certificate. Default: fetched. */
  readonly KEYS?: string;
}

type Handler = (request: Request, env: Env) => Response | Promise<Response>;

/** With the first request, as the settings come with it; then kept, and the keys with it. */
let messages: Handler | undefined;

function createMessages({ ISSUER: issuer, AUDIENCE: audience, KEYS }: Env): Handler {
  // The platform's own fetch; it must not be called as a method of another object.
  const source = KEYS ? { keys: JSON.parse(KEYS) } : { fetch: (url: string, init: RequestInit) => fetch(url, init) };
  const resourceServer = createResourceServer({ issuer, audience, ...source });
  const protect = createProtect(resourceServer);
  return protect({ scopes: ['read:messages'] }, (_request, { claims }, _env: Env) =>
    Response.json({ reader: claims.sub }),
  );
}

export default {
  fetch(request: Request, env: Env): Response | Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === '/') return new Response('open to all');
    if (pathname !== '/messages') return new Response(null, { status: 404 });
    messages ??= createMessages(env);
    return messages(request, env);
  },
};
