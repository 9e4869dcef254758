import type { IsTrusted } from '../../http/peer.ts';
import type { ErrorBodyFormat } from '../../refusal/error-body.ts';
import type { Refusal } from '../../refusal/refusal.ts';
import { Refused } from '../../refused.ts';
import { type Answer, answerRefusal, createAnswer, plainError } from '../../server/http/answer.ts';
import { type App, type Exchange, noteRefusal, noteWouldRefuse } from '../../server/http/exchange.ts';
import type { SettingNames } from '../../server/settings/setting-names.ts';
import type { AdmittedDecision, Gate, RefusedDecision } from '../gate.ts';
import { describeTarget } from '../match/refused-target.ts';
import { readOriginalRequest, readSubrequest, type Subrequest } from './original-request.ts';

export interface GateAppOptions {
  /** The active gate; a request keeps its gate across a reload. */
  readonly current: () => Gate;
  readonly isTrusted: IsTrusted;
  readonly errorBody: ErrorBodyFormat;
  readonly names: SettingNames;
  readonly onAdmitted: (admission: AdmittedDecision) => void;
}

/** Creates the app for proxies: it responds with 200 and the identity headers, or with the complete refusal. */
export function createGateApp({ current, isTrusted, errorBody, names, onAdmitted }: GateAppOptions): App {
  const notFound = plainError(errorBody, 404);
  // Equal facts produce the same refusal object, and one caller the same list of headers.
  const refused: Readonly<Record<Subrequest, WeakMap<Refusal, Answer>>> = {
    'forward-auth': new WeakMap(),
    'ext-authz': new WeakMap(),
  };
  const admitted = new WeakMap<readonly string[], Answer>();

  const refuse = (exchange: Exchange, { error, refusal, cors, audited }: RefusedDecision, kind: Subrequest): Answer => {
    exchange.audited = audited;
    noteRefusal(exchange, error, names);
    const known = refused[kind].get(refusal);
    if (known !== undefined) return cors.length === 0 ? known : known.with(...cors);
    // nginx cannot read the body of this response, so a header carries a copy of it.
    const copied = kind === 'forward-auth' ? ['x-gate-body', refusal.body] : [];
    const answer = answerRefusal(refusal, ...copied);
    refused[kind].set(refusal, answer);
    return cors.length === 0 ? answer : answer.with(...cors);
  };

  const admit = (exchange: Exchange, admission: AdmittedDecision): Answer => {
    const { identity, access, dpopNonce, wouldRefuse } = admission;
    exchange.audited = admission.audited;
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

  return async (exchange, target) => {
    exchange.routeKind = 'rule';
    const gate = current();
    const call = exchange.request;
    const kind = readSubrequest(target);
    if (!isTrusted(exchange.connection.remoteAddress)) {
      return refuse(exchange, gate.refuse(new Refused('untrusted_peer'), call), kind ?? 'forward-auth');
    }
    if (kind === undefined) {
      exchange.context = { ...describeTarget(call, undefined) };
      return notFound;
    }
    const original = readOriginalRequest(kind, call, target);
    if (original instanceof Refused) return refuse(exchange, gate.refuse(original, call), kind);
    exchange.request = original.request;
    const decision = await gate.decide(original.request, original.connection);
    if (decision.rule !== undefined) exchange.route = decision.rule.id;
    exchange.request = decision.request;
    return decision.kind === 'admitted' ? admit(exchange, decision) : refuse(exchange, decision, kind);
  };
}
