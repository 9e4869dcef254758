import { createServer, type Server } from 'node:http';
import { endAtExpiry, type ResourceServer } from 'portcullis';
import { createProtect } from 'portcullis/node';

/** A stream of events that ends when the token does: the client comes back with a fresh one. */
export function createEvents(resourceServer: ResourceServer): Server {
  const protect = createProtect(resourceServer);
  return createServer(
    protect({ scopes: ['read:events'] }, (_request, response, access) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
      response.write(`data: hello ${access.claims.sub}\n\n`);
      const cancel = endAtExpiry(access, () => response.end('event: expired\ndata:\n\n'));
      response.once('close', cancel);
    }),
  );
}
