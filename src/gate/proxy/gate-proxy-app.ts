import { createReadClientAddress, parseTrust } from '../../core/http/external-url.ts';
import { namePeer } from '../../core/http/peer-name.ts';
import { HeldBody } from '../../core/mcp/held-body.ts';
import { readNodeMessage } from '../../core/mcp/node-message.ts';
import type { ReadMessage } from '../../core/mcp/operations.ts';
import { Refused } from '../../core/refused.ts';
import { followAccess, type TokenEnd } from '../../core/resource-server/access.ts';
import { readRequestId } from '../../core/resource-server/events.ts';
import {
  Answer,
  answerRefusal,
  type Exchange,
  type HeaderList,
  noteRefusal,
  passedOn,
  type StreamApp,
  sendAnswer,
  type Wire,
} from '../../server/http/exchange.ts';
import { propagateTrace } from '../../server/observation/traces.ts';
import { nameSettings } from '../../server/settings/setting-names.ts';
import type { Settings } from '../../server/settings/settings.ts';
import type { AdmittedDecision, Gate, NoteDecision, RefusedDecision } from '../gate.ts';
import { readOfferedToken } from '../match/request-target.ts';
import type { Rule } from '../match/rules.ts';
import { hasHeader } from './headers.ts';
import { createExamine, type Forwarding, type Framing } from './request-head.ts';
import type { ReverseProxy } from './reverse-proxy.ts';
import { repeatable } from './upstream.ts';
import { defaultUpstream, type UpstreamMap } from './upstreams.ts';

interface GateProxyAppOptions {
  /** The active gate and its upstreams, which a reload replaces together; a request keeps both across a reload. */
  readonly current: () => { readonly gate: Gate; readonly upstreams: UpstreamMap };
  readonly note: NoteDecision;
  readonly settings: Settings;
  /** Called for each tunnel and event stream that ends with its token. */
  readonly onStreamEnd: (cause: TokenEnd) => void;
}

/** A request and its streams, with the gate that decides on it. */
interface ForwardContext {
  readonly exchange: Exchange;
  readonly wire: Wire;
  readonly gate: Gate;
  readonly upstreams: UpstreamMap;
  readonly framing: Framing;
  readonly held: HeldBody | undefined;
}

/** Continues the trace in the gate's span, and removes the token of a browser's WebSocket. */
function replaceHeaders(exchange: Exchange, rule: Rule): Forwarding['replaced'] {
  const trace = propagateTrace(exchange);
  const offered = rule.webSocketToken && readOfferedToken(exchange.request.headers);
  return offered === undefined ? trace : new Map([...(trace ?? []), ['sec-websocket-protocol', offered.others]]);
}

/** A challenge with `invalid_token` (RFC 6750 §3.1), also after other challenges. */
const tokenRefusal =
  /(?:^|,)\s*Bearer\s+(?:[\w-]+\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s",]*)\s*,\s*)*error\s*=\s*"?invalid_token"?\s*(?:,|$)/i;

/** Adds the exchanged token. If the upstream refuses it, a safe request without a body is sent again with a new one. */
function replaceToken(
  { access, exchanged, rule }: AdmittedDecision,
  forwarding: Forwarding,
  { gate, proxy, framing }: Pick<ForwardContext, 'gate' | 'framing'> & { readonly proxy: ReverseProxy },
): Forwarding {
  const exchange = gate.findExchange(rule);
  if (access === undefined || exchanged === undefined || exchange === undefined) return forwarding;
  const { incoming, outgoing } = forwarding;
  const isSafe = framing.body === 'none' && repeatable.has(incoming.method ?? '');
  const sendAgain = async (): Promise<void> => {
    const next = await exchange.take(access);
    if (outgoing.destroyed) return;
    if (next instanceof Refused) return forwarding.refuse(next);
    const { onDone: _, ...rest } = forwarding; // the first response calls it
    proxy.forward({ ...rest, authorization: `Bearer ${next.token}` }, framing);
  };
  const repeat = (status: number, headers: HeaderList): boolean => {
    const isRefused = status === 401 && hasHeader(headers, 'www-authenticate', tokenRefusal);
    if (!isRefused || !exchange.discard(access, exchanged) || !isSafe) return false;
    void sendAgain();
    return true;
  };
  return { ...forwarding, authorization: `Bearer ${exchanged.token}`, repeat };
}

export function createGateProxyApp({ current, note, settings, onStreamEnd }: GateProxyAppOptions): StreamApp {
  const { trustProxy, peerShare, uploadTimeout } = settings;
  const isTrusted = parseTrust(trustProxy);
  const readClientAddress = createReadClientAddress(trustProxy);
  const names = nameSettings(settings);
  const examine = createExamine();
  const nameClient = ({ request, connection }: Exchange): string => namePeer(readClientAddress(request, connection));

  const refuse = (exchange: Exchange, rejection: RefusedDecision): Answer => {
    note(exchange, rejection);
    return answerRefusal(rejection.refusal, ...rejection.cors);
  };

  const followToken = ({ access, rule, request }: AdmittedDecision, exchange: Exchange): Forwarding['followToken'] => {
    if (access === undefined || rule.streams === 'outlive-token' || rule.mode === 'report') return undefined;
    // A response to a message of MCP may last longer than the token that sent it.
    const isMessage = rule.mcp !== undefined && request.method === 'POST';
    const until = rule.streams === 'end-with-revocation' || isMessage ? 'revocation' : 'expiry';
    return (end) =>
      followAccess(access, {
        until,
        end(cause) {
          exchange.context = { ...exchange.context, ended: cause };
          onStreamEnd(cause);
          end();
        },
      });
  };

  const forward = (admission: AdmittedDecision, context: ForwardContext): Answer | typeof passedOn => {
    const { exchange, wire, gate, upstreams, framing, held } = context;
    const { rule, identity, externalUrl, cors, dpopNonce } = admission;
    const { id, request, connection } = exchange;
    note(exchange, admission);
    if (admission.isCorsPreflight) return new Answer(204, cors, '');
    const upstream = rule.upstream ?? defaultUpstream;
    const proxy = upstreams.get(upstream);
    // Rules without an upstream are not loaded.
    if (proxy === undefined) return refuse(exchange, gate.refuse(new Refused('unexpected'), request));
    exchange.context = { ...exchange.context, upstream };
    wire.onForward();
    const { incoming, outgoing, takeSocket } = wire;
    const forwarding: Forwarding = {
      ...{ incoming, outgoing, takeSocket, held, externalUrl, identity, rule },
      isPeerTrusted: isTrusted(connection.remoteAddress),
      client: nameClient(exchange),
      // Report mode does not change the upstream's request.
      credentials: rule.mode === 'report' ? 'forward' : rule.credentials,
      requestId: readRequestId(request) ?? id,
      replaced: replaceHeaders(exchange, rule),
      responseHeaders: ['X-Request-Id', id, ...(dpopNonce === undefined ? [] : ['DPoP-Nonce', dpopNonce]), ...cors],
      prefersUpstreamCors: rule.cors === undefined,
      followToken: followToken(admission, exchange),
      refuse(error) {
        held?.release();
        sendAnswer(refuse(exchange, gate.refuse(error, exchange.request, rule)), outgoing, id);
      },
      onCut: (error) => noteRefusal(exchange, error, names),
      onDone: () => wire.onDone(),
    };
    proxy.forward(replaceToken(admission, forwarding, { gate, proxy, framing }), framing);
    return passedOn;
  };

  return async (exchange, _target, wire) => {
    exchange.routeKind = 'rule';
    const { gate, upstreams } = current();
    const framing = examine(wire.incoming, wire.outgoing);
    if (framing instanceof Refused) return refuse(exchange, gate.refuse(framing, exchange.request));
    let held: HeldBody | undefined;
    const decision = await gate.decide(exchange.request, exchange.connection, {
      readMessage() {
        held = new HeldBody({ client: nameClient(exchange), share: peerShare });
        return readHeldMessage(wire, held, uploadTimeout * 1000);
      },
    });
    exchange.request = decision.request;
    const answer =
      decision.kind === 'admitted'
        ? forward(decision, { exchange, wire, gate, upstreams, framing, held })
        : refuse(exchange, decision);
    if (answer !== passedOn) held?.release();
    return answer;
  };
}

function readHeldMessage({ incoming, outgoing }: Wire, held: HeldBody, maxMilliseconds: number): Promise<ReadMessage> {
  return readNodeMessage(incoming, held, {
    maxMilliseconds,
    onBegin() {
      if (/^100-continue$/i.test(incoming.headers.expect ?? '')) outgoing.writeContinue();
    },
  });
}
