import type { ErrorBodyFormat } from '../../refusal/error-body.ts';
import { assertionKeysPath } from '../../server/admin/admin.ts';
import { type Answer, createAnswer, plainError } from '../../server/http/answer.ts';
import type { Exchange, StreamApp } from '../../server/http/exchange.ts';
import type { Gate } from '../gate.ts';

const headers = ['content-type', 'application/jwk-set+json', 'cache-control', 'public, max-age=300'];
const written = new WeakMap<Gate, Answer>();

/** The response with the published keys of a gate; `undefined` if its rules have no `assertion`. */
export function describeAssertionKeys(gate: Gate | undefined): Answer | undefined {
  if (gate?.assertionKeys === undefined) return undefined;
  const answer = written.get(gate) ?? createAnswer(200, headers, gate.assertionKeys);
  written.set(gate, answer);
  return answer;
}

/** Serves the published keys on any host and to any peer, before the rules and before a proxy is trusted. */
export function serveAssertionKeys(app: StreamApp, current: () => Gate, errorBody: ErrorBodyFormat): StreamApp {
  const notAllowed = plainError(errorBody, 405).with('allow', 'GET, HEAD');
  return (exchange: Exchange, target, wire) => {
    const isKeys = target.startsWith(assertionKeysPath) && /^(?:\?|$)/.test(target.slice(assertionKeysPath.length));
    const keys = isKeys ? describeAssertionKeys(current()) : undefined;
    if (keys === undefined) return app(exchange, target, wire);
    const { method } = exchange.request;
    return method === 'GET' || method === 'HEAD' ? keys : notAllowed;
  };
}
