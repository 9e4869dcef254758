import {
  type handleUnaryCall,
  Metadata,
  Server,
  type ServerUnaryCall,
  type ServiceDefinition,
  type StatusObject,
  status,
} from '@grpc/grpc-js';
import { type Access, AccessError, type Policy, type ResourceRequest, type ResourceServer } from 'portcullis';

/** The definition of one method in a generated service. */
export const service = {
  read: {
    path: '/messages.Messages/Read',
    requestStream: false,
    responseStream: false,
    requestSerialize: (text: string) => Buffer.from(text),
    requestDeserialize: String,
    responseSerialize: (text: string) => Buffer.from(text),
    responseDeserialize: String,
  },
} satisfies ServiceDefinition;

/** The code that gRPC has for a status of HTTP. */
const codes: ReadonlyMap<number, status> = new Map([
  [400, status.INVALID_ARGUMENT],
  [401, status.UNAUTHENTICATED],
  [403, status.PERMISSION_DENIED],
  [503, status.UNAVAILABLE],
]);

/** Makes the `protect` function for unary methods. */
function createProtect(server: ResourceServer) {
  return <Q, A>(policy: Policy, handler: (request: Q, access: Access) => A | Promise<A>): handleUnaryCall<Q, A> =>
    async (call, callback) => {
      const request = toResourceRequest(call);
      try {
        callback(null, await handler(call.request, await server.authorize(request, policy)));
      } catch (error) {
        callback(toStatus(server, error, request, policy));
      }
    };
}

/** gRPC is HTTP/2: a call is a POST to the path of its method. */
function toResourceRequest(call: ServerUnaryCall<unknown, unknown>): ResourceRequest {
  // All values of a name: a second one must not vanish.
  const read = (name: string): string | null => call.metadata.get(name).join(', ') || null;
  return { method: 'POST', url: `https://${call.getHost()}${call.getPath()}`, headers: { get: read } };
}

function toStatus(server: ResourceServer, error: unknown, request: ResourceRequest, policy: Policy): StatusObject {
  const metadata = new Metadata();
  // Other errors are defects of the handler, which the client must not see.
  if (!(error instanceof AccessError)) return { code: status.INTERNAL, details: 'The call failed.', metadata };
  const { headers } = server.describeRefusal(error, request, { policy });
  for (const name of ['www-authenticate', 'dpop-nonce']) {
    const value = headers[name];
    if (value !== undefined) metadata.set(name, value);
  }
  return { code: codes.get(error.failure.status) ?? status.INTERNAL, details: error.failure.description, metadata };
}

/** A server with one method. */
export function createMessages(resourceServer: ResourceServer): Server {
  const protect = createProtect(resourceServer);
  const server = new Server();
  server.addService(service, {
    read: protect({ scopes: ['read:messages'] }, (text: string, { claims }) => `${claims.sub}: ${text}`),
  });
  return server;
}
