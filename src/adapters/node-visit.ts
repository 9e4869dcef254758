import type { IncomingMessage, ServerResponse } from 'node:http';
import { same, settle } from '../maybe-promise.ts';
import type { Access } from '../resource-server/resource-server.ts';
import type { Checkpoint, Demand } from './checkpoint.ts';
import { sendRefusal, setNonce } from './node-answer.ts';
import { readNodeRequest } from './node-request.ts';

/** One request of `node:http` at a route. */
export interface NodeVisit<Q extends IncomingMessage> {
  readonly incoming: Q;
  readonly outgoing: ServerResponse;
  /** The request target, if a framework has cut something off `incoming.url`. */
  readonly target?: string | undefined;
}

/** Lets a request in to a handler, or answers it: the wrapper's form. */
export function passToHandler<Q extends IncomingMessage, C>(
  checkpoint: Checkpoint<Q>,
  demand: Demand<C>,
  visit: NodeVisit<Q> & { readonly handle: (access: Access<C> | undefined) => unknown },
): unknown {
  const { outgoing, handle } = visit;
  const seen = see(visit);
  const answer = (error: unknown): unknown => {
    const refusal = outgoing.headersSent ? undefined : checkpoint.describeThrown(error, seen);
    if (refusal === undefined) throw error;
    return sendRefusal(refusal, outgoing);
  };
  return checkpoint.pass<unknown, C>(demand, {
    ...seen,
    admit: (access) => {
      if (access !== undefined) setNonce(access, outgoing);
      return settle(() => handle(access), same, answer);
    },
    refuse: (refusal) => sendRefusal(refusal, outgoing),
  });
}

/** Lets a request go on to what is behind, or answers it: the form of middleware. */
export function passOn<Q extends IncomingMessage, C>(
  checkpoint: Checkpoint<Q>,
  demand: Demand<C>,
  visit: NodeVisit<Q> & {
    readonly next: (error?: unknown) => void;
    readonly admitted?: (access: Access<C>) => void;
  },
): void {
  const { outgoing, next, admitted } = visit;
  const passed = checkpoint.pass<void, C>(demand, {
    ...see(visit),
    admit: (access) => {
      if (access !== undefined) {
        setNonce(access, outgoing);
        admitted?.(access);
      }
      next();
    },
    refuse: (refusal) => sendRefusal(refusal, outgoing),
  });
  if (passed instanceof Promise) passed.catch(next);
}

function see<Q extends IncomingMessage>({ incoming, target }: NodeVisit<Q>) {
  return { key: incoming, request: readNodeRequest(incoming, target), connection: incoming.socket, told: incoming };
}
