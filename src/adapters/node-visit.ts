import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Access, ResourceServer } from '../resource-server/resource-server.ts';
import type { RegisteredClaims } from '../token/claims.ts';
import { checkNodeHttp } from './admission.ts';
import {
  type AdapterOptions,
  type Checkpoint,
  createCheckpoint,
  type RoutePolicy,
  type Visitor,
} from './checkpoint.ts';
import { type AuthorizeForms, createMiddlewareForms } from './forms.ts';
import { readNodeRequest } from './node-request.ts';
import { type NodeMiddleware, sendRefusal, setNonce } from './node-response.ts';

interface NodeVisit<Q extends IncomingMessage> {
  readonly incoming: Q;
  readonly outgoing: ServerResponse;
  /** Request target, if a framework has removed a prefix from `incoming.url`. */
  readonly target?: string | undefined;
}

/** Creates the checkpoint of an adapter for `node:http`. Throws `TypeError` for invalid options. */
export function createNodeCheckpoint<Q>(
  caller: string,
  server: ResourceServer<RegisteredClaims>,
  options: AdapterOptions<Q>,
  more?: readonly string[],
): Checkpoint<Q> {
  checkNodeHttp(caller);
  return createCheckpoint<Q>(caller, server, options, more);
}

export function describeNode<Q>(incoming: IncomingMessage, target: string | undefined, original: Q): Visitor<Q> {
  return { key: incoming, request: readNodeRequest(incoming, target), connection: incoming.socket, original };
}

export function passToHandler<Q extends IncomingMessage, C>(
  checkpoint: Checkpoint<Q>,
  route: RoutePolicy<C>,
  visit: NodeVisit<Q> & { readonly handle: (access: Access<C> | undefined) => unknown },
): Promise<void> {
  const { incoming, outgoing, handle } = visit;
  const visitor = describeNode(incoming, visit.target, incoming);
  return checkpoint.pass<void, C>(route, {
    ...visitor,
    admit: async (access) => {
      if (access !== undefined) setNonce(access, outgoing);
      try {
        const handled = handle(access);
        if (handled instanceof Promise) await handled;
      } catch (error) {
        const refusal = outgoing.headersSent ? undefined : checkpoint.describeThrown(error, visitor);
        if (refusal === undefined) throw error;
        sendRefusal(refusal, outgoing);
      }
    },
    refuse: (refusal) => sendRefusal(refusal, outgoing),
  });
}

/** Creates the middleware form for `node:http`. `admitted` is called with the access before `next`. */
export function createNodeAuthorize<Q extends IncomingMessage, D>(
  server: ResourceServer<RegisteredClaims>,
  options: AdapterOptions<Q>,
  admitted?: (incoming: IncomingMessage, access: Access<unknown>) => void,
): AuthorizeForms<NodeMiddleware, IncomingMessage, D> {
  const checkpoint = createNodeCheckpoint('createAuthorize', server, options);
  return createMiddlewareForms(
    (route): NodeMiddleware =>
      (incoming, outgoing, next) => {
        const passed = checkpoint.pass<boolean, unknown>(route, {
          ...describeNode(incoming, incoming.originalUrl, incoming as unknown as Q), // the framework calls with its own request
          admit: (access) => {
            if (access !== undefined) {
              setNonce(access, outgoing);
              admitted?.(incoming, access);
            }
            return true;
          },
          refuse: (refusal) => {
            sendRefusal(refusal, outgoing);
            return false;
          },
        });
        // `next` is called outside: an error that it throws must not call it again.
        void passed.then((isAdmitted) => isAdmitted && next(), next);
      },
  );
}
