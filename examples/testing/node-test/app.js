import { createServer } from 'node:http';

const policy = { scopes: ['read:messages'] };

/** A server with one route, behind a resource server. */
export function createApp(resourceServer) {
  return createServer(async ({ method, url, rawHeaders, socket }, response) => {
    const headers = new Headers();
    // All of them: Node's own object keeps the first of two Authorization headers and hides the other.
    for (let i = 0; i < rawHeaders.length; i += 2) headers.append(rawHeaders[i], rawHeaders[i + 1]);
    const request = { method, url: `http://localhost${url}`, headers };
    try {
      const { claims } = await resourceServer.authorize(request, policy, socket);
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ reader: claims.sub }));
    } catch (error) {
      const refusal = resourceServer.refuse(error, request, { policy, connection: socket });
      response.writeHead(refusal.status, Object.fromEntries(refusal.headers)).end(await refusal.text());
    }
  });
}
