import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { endAtExpiry, type ResourceServer } from 'portcullis';
import { accessOf, createAuthorize, findAccess } from 'portcullis/node';
import { Server as Sockets } from 'socket.io';

/** A request as engine.io hands it over. */
type EngineRequest = IncomingMessage & { readonly _query: { readonly sid?: string } };

/** Authorizes the request that opens a session, by polling or as the upgrade of a WebSocket. */
export function createRoom(resourceServer: ResourceServer): Server {
  const authorize = createAuthorize(resourceServer)({ scopes: ['chat'] });
  const server = createServer();
  const sockets = new Sockets(server);
  sockets.engine.use((request: EngineRequest, response: ServerResponse, next: (error?: unknown) => void) => {
    // Later requests of a session have its id, which is secret. An empty id opens a session.
    if (request._query.sid) next();
    else authorize(request, response, next);
  });
  // A session without authorization.
  sockets.use((socket, next) => next(findAccess(socket.request) === undefined ? new Error('refused') : undefined));
  sockets.on('connection', (socket) => {
    const access = accessOf(socket.request);
    socket.emit('hello', access.claims.sub);
    const cancel = endAtExpiry(access, () => socket.disconnect(true));
    socket.once('disconnect', cancel);
  });
  return server;
}
