import { AccessError } from '../../failures.ts';
import type { IsTrusted } from '../../http/trust.ts';
import { after } from '../../maybe-promise.ts';
import type { ErrorBodyFormat } from '../../refusal/error-body.ts';
import type { Refusal } from '../../refusal/refusal.ts';
import { type Answer, answerRefusal, createAnswer, plainError } from '../../server/http/answer.ts';
import { type Exchange, noteRefusal, noteWouldRefuse } from '../../server/http/exchange.ts';
import type { App } from '../../server/http/stream.ts';
import type { SettingNames } from '../../server/settings/setting-names.ts';
import type { Admission, Gate, Rejection } from '../gate.ts';
import { readOriginalRequest, readSubrequest, type Subrequest } from './original-request.ts';

/** What the gate beside a proxy is made of. */
export interface GateAppOptions {
  /** The gate in force; a request keeps the one that it began with. */
  readonly current: () => Gate;
  /** Who may ask. */
  readonly isTrusted: IsTrusted;
  readonly errorBody: ErrorBodyFormat;
  readonly names: SettingNames;
  /** Told of each request that may pass. */
  readonly onAdmitted: (admission: Admission) => void;
}

/** Answers proxies that ask whether a request may pass: 200 with the identity headers, or the refusal whole. */
export function createGateApp({ current, isTrusted, errorBody, names, onAdmitted }: GateAppOptions): App {
  const notFound = plainError(errorBody, 404);
  // The resource servers hand out the same refusal for the same facts, and the gate the same list for the same caller.
  const refused: Readonly<Record<Subrequest, WeakMap<Refusal, Answer>>> = {
    'forward-auth': new WeakMap(),
    'ext-authz': new WeakMap(),
  };
  const admitted = new WeakMap<readonly string[], Answer>();

  const refuse = (exchange: Exchange, { error, refusal }: Rejection, kind: Subrequest): Answer => {
    noteRefusal(exchange, error, names);
    const known = refused[kind].get(refusal);
    if (known !== undefined) return known;
    // nginx sees headers of this answer only: it makes the body of its own from one of them.
    const copied = kind === 'forward-auth' ? ['x-gate-body', refusal.body] : [];
    const answer = answerRefusal(refusal, ...copied);
    refused[kind].set(refusal, answer);
    return answer;
  };

  const admit = (exchange: Exchange, admission: Admission): Answer => {
    const { identity, access, dpopNonce, wouldRefuse } = admission;
    exchange.claims = access?.claims;
    exchange.scheme = access?.scheme;
    if (wouldRefuse !== undefined) noteWouldRefuse(exchange, wouldRefuse, names);
    onAdmitted(admission);
    let answer = admitted.get(identity.headers);
    if (answer === undefined) {
      answer = createAnswer(200, identity.headers, '');
      admitted.set(identity.headers, answer);
    }
    return dpopNonce === undefined ? answer : answer.with('dpop-nonce', dpopNonce);
  };

  return (exchange, target) => {
    exchange.routeKind = 'rule';
    const gate = current();
    const call = exchange.request;
    const kind = readSubrequest(target);
    if (!isTrusted(exchange.connection.remoteAddress)) {
      return refuse(exchange, gate.refuse(new AccessError('untrusted_peer'), call), kind ?? 'forward-auth');
    }
    if (kind === undefined) return notFound;
    const original = readOriginalRequest(kind, call, target);
    if (original instanceof AccessError) return refuse(exchange, gate.refuse(original, call), kind);
    exchange.request = original.request;
    const settle = (decision: Admission | Rejection): Answer => {
      if (decision.rule !== undefined) exchange.route = decision.rule.id;
      return decision.kind === 'admitted' ? admit(exchange, decision) : refuse(exchange, decision, kind);
    };
    return after(gate.decide(original.request, original.connection), settle, undefined);
  };
}
