import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type Access, AccessError, endAtExpiry, type ResourceServer } from 'portcullis';
import { toResourceRequest } from 'portcullis/node';
import { Server as Sockets } from 'socket.io';

/** A request as engine.io passes it. */
type EngineRequest = IncomingMessage & { readonly _query: { readonly sid?: string } };

/** Authorizes the request that opens a session, by polling or as the upgrade of a WebSocket. */
export function createRoom(resourceServer: ResourceServer): Server {
  const policy = { scopes: ['chat'] };
  const admitted = new WeakMap<IncomingMessage, Access>();

  /** Sends the refusal of a request that is not admitted. */
  async function admit(incoming: IncomingMessage, response: ServerResponse): Promise<boolean> {
    const request = toResourceRequest(incoming);
    try {
      admitted.set(incoming, await resourceServer.authorize(request, policy, incoming.socket));
      return true;
    } catch (error) {
      if (!(error instanceof AccessError)) throw error;
      const { status, headers, body } = resourceServer.describeRefusal(error, request, { policy });
      response.writeHead(status, headers).end(body);
      return false;
    }
  }

  const server = createServer();
  const sockets = new Sockets(server);
  sockets.engine.use((request: EngineRequest, response: ServerResponse, next: (error?: unknown) => void) => {
    // Later requests of a session have its id, which is secret. An empty id opens a session.
    if (request._query.sid) next();
    else admit(request, response).then((isAdmitted) => isAdmitted && next(), next);
  });
  // A session without authorization.
  sockets.use((socket, next) => next(admitted.has(socket.request) ? undefined : new Error('refused')));
  sockets.on('connection', (socket) => {
    const access = admitted.get(socket.request);
    if (access === undefined) return;
    socket.emit('hello', access.claims.sub);
    const cancel = endAtExpiry(access, () => socket.disconnect(true));
    socket.once('disconnect', cancel);
  });
  return server;
}
