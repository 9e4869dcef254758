import type { ExternalUrl, ReadExternalUrl } from '../../http/external-url.ts';
import type { IsTrusted, ReadClientAddress } from '../../http/peer.ts';
import { namePeer } from '../../http/peer-name.ts';
import { HeldBody } from '../../mcp/held-body.ts';
import { readNodeMessage } from '../../mcp/node-message.ts';
import { Refused } from '../../refused.ts';
import { Answer, answerRefusal, type HeaderList, sendAnswer } from '../../server/http/answer.ts';
import {
  type Exchange,
  noteRefusal,
  noteWouldRefuse,
  passedOn,
  type StreamApp,
  type Wire,
} from '../../server/http/exchange.ts';
import { propagateTrace, readRequestId } from '../../server/observation/traces.ts';
import type { SettingNames } from '../../server/settings/setting-names.ts';
import type { AdmittedDecision, Gate, RefusedDecision } from '../gate.ts';
import { createExamine, discardRest, type Forwarding, type Framing } from './reverse-proxy.ts';
import { defaultUpstream, type UpstreamMap } from './upstreams.ts';

export interface GateProxyAppOptions {
  /** The active gate; a request keeps its gate across a reload. */
  readonly current: () => ActiveGate;
  readonly readExternalUrl: ReadExternalUrl;
  readonly isTrusted: IsTrusted;
  readonly readClientAddress: ReadClientAddress;
  readonly names: SettingNames;
  readonly onAdmitted: (admission: AdmittedDecision) => void;
  /** Time without a byte of a message of MCP, after which it is refused. */
  readonly uploadMilliseconds: number;
  /** Share of the limit on messages that one client may use. */
  readonly peerShare: number;
}

/** A gate and its upstreams, which a reload replaces together. */
export interface ActiveGate {
  readonly gate: Gate;
  readonly upstreams: UpstreamMap;
}

export function createGateProxyApp(options: GateProxyAppOptions): StreamApp {
  const { current, readExternalUrl, isTrusted, readClientAddress, names, onAdmitted, uploadMilliseconds, peerShare } =
    options;

  const examine = createExamine();

  const describe = (exchange: Exchange, { error, refusal, cors, audited }: RefusedDecision): Answer => {
    exchange.audited = audited;
    const { context } = exchange;
    noteRefusal(exchange, error, names);
    exchange.context = context === undefined ? exchange.context : { ...exchange.context, ...context };
    return answerRefusal(refusal, ...cors);
  };

  const refuse = (exchange: Exchange, rejection: RefusedDecision, { incoming }: Wire): Answer => {
    // The body of a refused request is not read.
    discardRest(incoming);
    return describe(exchange, rejection);
  };

  const pass = (admission: AdmittedDecision, context: ForwardContext): Answer | typeof passedOn => {
    const { rule, access, wouldRefuse, cors, isCorsPreflight } = admission;
    const { exchange, gate, upstreams, wire, framing } = context;
    const { request, connection } = exchange;
    const externalUrl = readExternalUrl(request, connection);
    if (externalUrl instanceof Refused) return refuse(exchange, gate.refuse(externalUrl, request), wire);
    exchange.audited = admission.audited;
    exchange.claims = access?.claims;
    exchange.scheme = access?.scheme;
    if (wouldRefuse !== undefined) noteWouldRefuse(exchange, wouldRefuse, names);
    onAdmitted(admission);
    if (isCorsPreflight) {
      discardRest(wire.incoming);
      return new Answer(204, cors, '', true);
    }
    const name = rule.upstream ?? defaultUpstream;
    const proxy = upstreams.get(name);
    // Rules without an upstream are not loaded.
    if (proxy === undefined) return refuse(exchange, gate.refuse(new Refused('unexpected'), request), wire);
    exchange.context = { ...exchange.context, upstream: name };
    wire.onForward();
    const isPeerTrusted = isTrusted(connection.remoteAddress);
    const client = namePeer(readClientAddress(request, connection));
    proxy.forward(new AdmittedForwarding(context, { admission, externalUrl, isPeerTrusted, client }), framing);
    return passedOn;
  };

  return async (exchange, _target, wire) => {
    exchange.routeKind = 'rule';
    const { gate, upstreams } = current();
    const framing = examine(wire.incoming, wire.outgoing);
    if (framing instanceof Refused) return describe(exchange, gate.refuse(framing, exchange.request));
    const context: ForwardContext = { exchange, gate, upstreams, wire, framing, describe, names };
    const decision = await gate.decide(exchange.request, exchange.connection, () => {
      const { request, connection } = exchange;
      context.held = new HeldBody({ client: namePeer(readClientAddress(request, connection)), share: peerShare });
      return readNodeMessage(wire.incoming, context.held, {
        idleMilliseconds: uploadMilliseconds,
        onBegin() {
          if (/^100-continue$/i.test(wire.incoming.headers.expect ?? '')) wire.outgoing.writeContinue();
        },
      });
    });
    if (decision.rule !== undefined) exchange.route = decision.rule.id;
    exchange.request = decision.request;
    const answer = decision.kind === 'admitted' ? pass(decision, context) : refuse(exchange, decision, wire);
    if (answer !== passedOn) context.held?.release();
    return answer;
  };
}

interface ForwardContext {
  readonly exchange: Exchange;
  readonly gate: Gate;
  readonly upstreams: UpstreamMap;
  readonly wire: Wire;
  readonly framing: Framing;
  readonly describe: (exchange: Exchange, rejection: RefusedDecision) => Answer;
  readonly names: SettingNames;
  held?: HeldBody;
}

interface Pass {
  readonly admission: AdmittedDecision;
  readonly externalUrl: ExternalUrl;
  readonly isPeerTrusted: boolean;
  readonly client: string;
}

/** An admitted request. A class, because one exists per request. */
class AdmittedForwarding implements Forwarding {
  readonly incoming: Wire['incoming'];
  readonly outgoing: Wire['outgoing'];
  readonly takeSocket: Wire['takeSocket'];
  readonly identity: Forwarding['identity'];
  readonly externalUrl: ExternalUrl;
  readonly isPeerTrusted: boolean;
  readonly credentials: Forwarding['credentials'];
  readonly client: string;
  readonly requestId: string;
  readonly trace: Forwarding['trace'];
  readonly strip: Forwarding['strip'];
  readonly responseHeaders: HeaderList;
  readonly prefersUpstreamCors: boolean;
  readonly held: Forwarding['held'];
  readonly #context: ForwardContext;

  constructor(context: ForwardContext, { admission, externalUrl, isPeerTrusted, client }: Pass) {
    const { incoming, outgoing, takeSocket } = context.wire;
    const { rule, identity, cors, dpopNonce } = admission;
    const { id, request } = context.exchange;
    this.incoming = incoming;
    this.outgoing = outgoing;
    this.takeSocket = takeSocket;
    this.identity = identity;
    this.externalUrl = externalUrl;
    this.isPeerTrusted = isPeerTrusted;
    this.client = client;
    // Report mode does not change the upstream's request.
    this.credentials = rule.mode === 'report' ? 'forward' : rule.credentials;
    this.requestId = readRequestId(request) ?? id;
    this.trace = propagateTrace(context.exchange);
    this.strip = rule.stripPrefix === '' ? undefined : { prefix: rule.stripPrefix, segments: rule.strippedSegments };
    this.responseHeaders = [
      ...['X-Request-Id', id],
      ...(dpopNonce === undefined ? [] : ['DPoP-Nonce', dpopNonce]),
      ...cors,
    ];
    this.prefersUpstreamCors = rule.cors === undefined;
    this.held = context.held;
    this.#context = context;
  }

  refuse(error: Refused): void {
    this.held?.release();
    const { exchange, gate, describe } = this.#context;
    const answer = describe(exchange, gate.refuse(error, exchange.request));
    sendAnswer(answer, this.outgoing, exchange.id);
  }

  onCut(error: Refused): void {
    noteRefusal(this.#context.exchange, error, this.#context.names);
  }

  onDone(): void {
    this.#context.wire.onDone();
  }
}
