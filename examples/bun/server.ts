import { createResourceServer } from 'portcullis';
import { createProtect } from 'portcullis/fetch';

/** The used part of Bun's type `Server`. */
interface BunServer {
  requestIP(request: Request): { readonly address: string } | null;
}

const { ISSUER: issuer = 'https://tenant.eu.auth0.com/', AUDIENCE: audience = 'https://api.example.com/' } =
  process.env;
const resourceServer = createResourceServer({ issuer, audience });
const protect = createProtect(resourceServer, {
  // For `trustProxy` with a list of addresses: it trusts no peer that it cannot see.
  connection: (request: Request, server: BunServer) => ({
    remoteAddress: server.requestIP(request)?.address,
    encrypted: request.url.startsWith('https:'),
  }),
});

const messages = protect({ scopes: ['read:messages'] }, (_request, { claims }, _server: BunServer) =>
  Response.json({ reader: claims.sub }),
);

function handle(request: Request, server: BunServer): Response | Promise<Response> {
  const { pathname } = new URL(request.url);
  if (pathname === '/') return new Response('open to all');
  return pathname === '/messages' ? messages(request, server) : new Response(null, { status: 404 });
}

/** `bun run server.ts` serves a default export like this. */
export default { port: Number(process.env['PORT'] ?? 3000), fetch: handle };
