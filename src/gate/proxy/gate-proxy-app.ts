import { AccessError } from '../../failures.ts';
import type { ReadClientAddress } from '../../http/client-address.ts';
import type { ExternalUrl, ReadExternalUrl } from '../../http/external-url.ts';
import { namePeer } from '../../http/peer-name.ts';
import type { IsTrusted } from '../../http/trust.ts';
import { after } from '../../maybe-promise.ts';
import { type Answer, answerRefusal, sendAnswer } from '../../server/http/answer.ts';
import { type Exchange, noteRefusal, noteWouldRefuse } from '../../server/http/exchange.ts';
import { passedOn, type StreamApp, type Wire } from '../../server/http/stream.ts';
import type { SettingNames } from '../../server/settings/setting-names.ts';
import type { Admission, Gate, Rejection } from '../gate.ts';
import { discardRest, type Forwarding, type Framing, type ReverseProxy } from './reverse-proxy.ts';

/** What the gate as the proxy is made of. */
export interface GateProxyAppOptions {
  /** The gate in force; a request keeps the one that it began with. */
  readonly current: () => Gate;
  readonly proxy: ReverseProxy;
  readonly readExternalUrl: ReadExternalUrl;
  /** Whose X-Forwarded-* are believed. */
  readonly isTrusted: IsTrusted;
  readonly readClientAddress: ReadClientAddress;
  readonly names: SettingNames;
  /** Told of each request that may pass. */
  readonly onAdmitted: (admission: Admission) => void;
}

/** Judges requests, and passes on those that may pass. */
export function createGateProxyApp(options: GateProxyAppOptions): StreamApp {
  const { current, proxy, readExternalUrl, isTrusted, readClientAddress, names, onAdmitted } = options;

  const describe = (exchange: Exchange, { error, refusal }: Rejection): Answer => {
    noteRefusal(exchange, error, names);
    return answerRefusal(refusal);
  };

  const refuse = (exchange: Exchange, rejection: Rejection, { incoming }: Wire): Answer => {
    // Nobody reads the body of a refused request.
    discardRest(incoming);
    return describe(exchange, rejection);
  };

  const pass = (admission: Admission, passage: Passage): Answer | typeof passedOn => {
    const { access, dpopNonce, wouldRefuse } = admission;
    const { exchange, gate, wire, framing } = passage;
    const { request, connection } = exchange;
    const externalUrl = readExternalUrl(request, connection);
    if (externalUrl instanceof AccessError) return refuse(exchange, gate.refuse(externalUrl, request), wire);
    exchange.claims = access?.claims;
    exchange.scheme = access?.scheme;
    if (wouldRefuse !== undefined) noteWouldRefuse(exchange, wouldRefuse, names);
    onAdmitted(admission);
    if (dpopNonce !== undefined) wire.outgoing.setHeader('DPoP-Nonce', dpopNonce);
    const isPeerTrusted = isTrusted(connection.remoteAddress);
    const client = namePeer(readClientAddress(request, connection));
    proxy.forward(new Passing(passage, { admission, externalUrl, isPeerTrusted, client }), framing);
    return passedOn;
  };

  const settle = (decision: Admission | Rejection, passage: Passage): Answer | typeof passedOn => {
    const { exchange, wire } = passage;
    if (decision.rule !== undefined) exchange.route = decision.rule.id;
    return decision.kind === 'admitted' ? pass(decision, passage) : refuse(exchange, decision, wire);
  };

  return (exchange, _target, wire) => {
    exchange.routeKind = 'rule';
    const gate = current();
    const framing = proxy.examine(wire.incoming, wire.outgoing);
    if (framing instanceof AccessError) return describe(exchange, gate.refuse(framing, exchange.request));
    const passage: Passage = { exchange, gate, wire, framing, describe, names };
    return after(gate.decide(exchange.request, exchange.connection), settle, passage);
  };
}

/** A request, and what judges it. */
interface Passage {
  readonly exchange: Exchange;
  readonly gate: Gate;
  readonly wire: Wire;
  readonly framing: Framing;
  readonly describe: (exchange: Exchange, rejection: Rejection) => Answer;
  readonly names: SettingNames;
}

/** What is known of a request that may pass. */
interface Pass {
  readonly admission: Admission;
  readonly externalUrl: ExternalUrl;
  readonly isPeerTrusted: boolean;
  readonly client: string;
}

/** A request that passes. A class because there is one for each request. */
class Passing implements Forwarding {
  readonly incoming: Wire['incoming'];
  readonly outgoing: Wire['outgoing'];
  readonly takeSocket: Wire['takeSocket'];
  readonly identity: Forwarding['identity'];
  readonly externalUrl: ExternalUrl;
  readonly isPeerTrusted: boolean;
  readonly credentials: Forwarding['credentials'];
  readonly client: string;
  readonly #passage: Passage;

  constructor(passage: Passage, { admission, externalUrl, isPeerTrusted, client }: Pass) {
    const { incoming, outgoing, takeSocket } = passage.wire;
    const { rule, identity } = admission;
    this.incoming = incoming;
    this.outgoing = outgoing;
    this.takeSocket = takeSocket;
    this.identity = identity;
    this.externalUrl = externalUrl;
    this.isPeerTrusted = isPeerTrusted;
    this.client = client;
    // A rule that only reports changes nothing of what the upstream got before.
    this.credentials = rule.mode === 'report' ? 'forward' : rule.credentials;
    this.#passage = passage;
  }

  refuse(error: AccessError): void {
    const { exchange, gate, describe } = this.#passage;
    const answer = describe(exchange, gate.refuse(error, exchange.request));
    sendAnswer(answer, this.outgoing, exchange.id);
  }

  onCut(error: AccessError): void {
    noteRefusal(this.#passage.exchange, error, this.#passage.names);
  }

  onDone(): void {
    this.#passage.wire.onDone();
  }
}
