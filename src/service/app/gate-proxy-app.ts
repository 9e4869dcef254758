import { AccessError } from '../../failures.ts';
import type { Admission, Gate, Rejection } from '../../gate/gate.ts';
import { discardRest, type ReverseProxy } from '../../gate/reverse-proxy.ts';
import type { ReadExternalUrl } from '../../http/external-url.ts';
import type { IsTrusted } from '../../http/trust.ts';
import { after } from '../../maybe-promise.ts';
import type { SettingNames } from '../settings/setting-names.ts';
import { type Answer, createAnswer, sendAnswer, withHeaders } from './answer.ts';
import { type Exchange, noteRefusal, noteWouldRefuse } from './exchange.ts';
import { passedOn, type StreamApp, type Wire } from './stream.ts';

/** What the gate as the proxy is made of. */
export interface GateProxyAppOptions {
  /** The gate in force; a request keeps the one that it began with. */
  readonly current: () => Gate;
  readonly proxy: ReverseProxy;
  readonly readExternalUrl: ReadExternalUrl;
  /** Whose X-Forwarded-* are believed. */
  readonly isTrusted: IsTrusted;
  readonly names: SettingNames;
  /** Told of each request that may pass. */
  readonly onAdmitted: (admission: Admission) => void;
}

/** Judges requests, and passes on those that may pass. */
export function createGateProxyApp(options: GateProxyAppOptions): StreamApp {
  const { current, proxy, readExternalUrl, isTrusted, names, onAdmitted } = options;

  const describe = (exchange: Exchange, { error, refusal }: Rejection): Answer => {
    noteRefusal(exchange, error, names);
    return createAnswer(refusal.status, Object.entries(refusal.headers).flat(), refusal.body);
  };

  const refuse = (exchange: Exchange, rejection: Rejection, { incoming }: Wire): Answer => {
    // Nobody reads the body of a refused request.
    discardRest(incoming);
    return describe(exchange, rejection);
  };

  const pass = (exchange: Exchange, admission: Admission, { gate, wire }: Passage): Answer | typeof passedOn => {
    const { rule, identity, access, dpopNonce, wouldRefuse } = admission;
    const { request, connection } = exchange;
    const { incoming, outgoing, takeSocket, onDone } = wire;
    const externalUrl = readExternalUrl(request, connection);
    if (externalUrl instanceof AccessError) return refuse(exchange, gate.refuse(externalUrl, request), wire);
    exchange.claims = access?.claims;
    exchange.scheme = access?.scheme;
    if (wouldRefuse !== undefined) noteWouldRefuse(exchange, wouldRefuse, names);
    onAdmitted(admission);
    if (dpopNonce !== undefined) outgoing.setHeader('DPoP-Nonce', dpopNonce);
    proxy.forward({
      ...{ incoming, outgoing, takeSocket, onDone },
      identity: { names: gate.identity.names, values: identity.values },
      externalUrl,
      isPeerTrusted: isTrusted(connection.remoteAddress),
      // A rule that only reports changes nothing of what the upstream got before.
      credentials: rule.mode === 'report' ? 'forward' : rule.credentials,
      refuse(error) {
        const answer = describe(exchange, gate.refuse(error, request));
        sendAnswer(withHeaders(answer, 'x-request-id', exchange.id), outgoing);
      },
      onCut: (error) => noteRefusal(exchange, error, names),
    });
    return passedOn;
  };

  return (exchange, _target, wire) => {
    exchange.routeKind = 'rule';
    const gate = current();
    const ambiguous: AccessError | undefined = proxy.examine(wire.incoming, wire.outgoing);
    if (ambiguous !== undefined) return describe(exchange, gate.refuse(ambiguous, exchange.request));
    const settle = (decision: Admission | Rejection): Answer | typeof passedOn => {
      if (decision.rule !== undefined) exchange.route = decision.rule.id;
      return decision.kind === 'admitted' ? pass(exchange, decision, { gate, wire }) : refuse(exchange, decision, wire);
    };
    return after(gate.decide(exchange.request, exchange.connection), settle, undefined);
  };
}

interface Passage {
  readonly gate: Gate;
  readonly wire: Wire;
}
