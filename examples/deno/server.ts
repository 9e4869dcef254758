import { createResourceServer } from 'portcullis';
import { createProtect } from 'portcullis/fetch';

/** The used part of the type `Deno.ServeHandlerInfo`. */
interface ServeInfo {
  readonly remoteAddr: { readonly hostname: string };
}

const { ISSUER: issuer = 'https://tenant.eu.auth0.com/', AUDIENCE: audience = 'https://api.example.com/' } =
  process.env;
const resourceServer = createResourceServer({ issuer, audience });
const protect = createProtect(resourceServer, {
  // For `trustProxy` with a list of addresses: it trusts no peer that it cannot see.
  connection: (request: Request, { remoteAddr }: ServeInfo) => ({
    remoteAddress: remoteAddr.hostname,
    encrypted: request.url.startsWith('https:'),
  }),
});

const messages = protect({ scopes: ['read:messages'] }, (_request, { claims }, _info: ServeInfo) =>
  Response.json({ reader: claims.sub }),
);

function handle(request: Request, info: ServeInfo): Response | Promise<Response> {
  const { pathname } = new URL(request.url);
  if (pathname === '/') return new Response('open to all');
  return pathname === '/messages' ? messages(request, info) : new Response(null, { status: 404 });
}

/** `deno serve --allow-env --allow-net server.ts` serves a default export like this. */
export default { fetch: handle };
