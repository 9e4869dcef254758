import { type IsTrusted, parseForwardedScheme, parseTrust } from '../../core/http/external-url.ts';
import type { Connection, ResourceRequest } from '../../core/http/request.ts';
import { errorBodyFormats } from '../../core/refusal/error-body.ts';
import type { Refusal } from '../../core/refusal/refusal.ts';
import { Refused } from '../../core/refused.ts';
import {
  type Answer,
  type App,
  answerRefusal,
  createAnswer,
  type Exchange,
  plainError,
} from '../../server/http/exchange.ts';
import type { Settings } from '../../server/settings/settings.ts';
import type { AdmittedDecision, Gate, NoteDecision, RefusedDecision } from '../gate.ts';
import { describeTarget } from '../match/request-target.ts';

interface BesideAppOptions {
  /** The active gate; a request keeps its gate across a reload. */
  readonly current: () => Gate;
  readonly note: NoteDecision;
  readonly settings: Settings;
}

/** Header with a copy of the body of a refusal: nginx cannot read the body of the response to its subrequest. */
export const bodyHeader = 'x-gate-body';

/** Creates the app for proxies: it responds with 200 and the identity headers, or with the complete refusal. */
export function createBesideApp({ current, note, settings }: BesideAppOptions): App {
  const isTrusted = readTrust(settings);
  const notFound = plainError(errorBodyFormats[settings.errorBody], 404);
  // Equal facts produce the same refusal object, and one caller the same list of headers.
  const refused: Readonly<Record<Subrequest, WeakMap<Refusal, Answer>>> = {
    'forward-auth': new WeakMap(),
    'ext-authz': new WeakMap(),
  };
  const admitted = new WeakMap<readonly string[], Answer>();

  const refuse = (exchange: Exchange, decision: RefusedDecision, kind: Subrequest): Answer => {
    note(exchange, decision);
    const { refusal, cors } = decision;
    const copied = kind === 'forward-auth' ? [bodyHeader, refusal.body] : [];
    const answer = refused[kind].get(refusal) ?? answerRefusal(refusal, ...copied);
    refused[kind].set(refusal, answer);
    return cors.length === 0 ? answer : answer.with(...cors);
  };

  const admit = (exchange: Exchange, decision: AdmittedDecision): Answer => {
    note(exchange, decision);
    const { headers } = decision.identity;
    const answer = admitted.get(headers) ?? createAnswer(200, headers, '');
    admitted.set(headers, answer);
    const { dpopNonce, exchanged } = decision;
    const replaced = exchanged === undefined ? answer : answer.with('authorization', `Bearer ${exchanged.token}`);
    return dpopNonce === undefined ? replaced : replaced.with('dpop-nonce', dpopNonce);
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
      exchange.context = describeTarget(call, undefined);
      return notFound;
    }
    const original = readOriginalRequest(kind, call, target);
    if (original instanceof Refused) return refuse(exchange, gate.refuse(original, call), kind);
    const connection = original.isEncrypted ? overTls : overTcp;
    exchange.request = original;
    const decision = await gate.decide(original, connection, { peer: exchange.connection });
    return decision.kind === 'admitted' ? admit(exchange, decision) : refuse(exchange, decision, kind);
  };
}

/** Reads the trusted peers. The rights of a unix socket's file choose its peers, which have no address. */
function readTrust({ trustProxy, host }: Settings): IsTrusted {
  const isTrusted = parseTrust(trustProxy);
  return host.startsWith('unix:') ? (address) => address === undefined || isTrusted(address) : isTrusted;
}

const overTls: Connection = { encrypted: true };
const overTcp: Connection = { encrypted: false };

/** Form of a proxy's subrequest. */
type Subrequest =
  | 'forward-auth'
  /** `/ext-authz/<path>`: the subrequest has the original method, host and path. */
  | 'ext-authz';

const extAuthzPrefix = '/ext-authz';
// RFC 9110 §9.1, with a limit that every registered method meets; without `post`, which some frameworks read as `POST`.
const methodGrammar = /^[A-Z\d!#$%&'*+.^_`|~-]{1,64}$/;
// Node joins two lines of one header with a comma and a space, and no URL contains a space.
const targetGrammar = /^\/[\x21-\x7e]*$/;
const hostGrammar = /^[\w~.:[\]-]+$/;

function readSubrequest(target: string): Subrequest | undefined {
  if (target === '/forward-auth' || target.startsWith('/forward-auth?')) return 'forward-auth';
  return target.startsWith(`${extAuthzPrefix}/`) ? 'ext-authz' : undefined;
}

function readOriginalRequest(kind: Subrequest, call: ResourceRequest, target: string): OriginalRequest | Refused {
  const { headers } = call;
  const malformed = (header: string): Refused => new Refused('bad_forwarded_header', { context: { header } });
  const scheme = parseForwardedScheme(headers.get('x-forwarded-proto') ?? '');
  if (scheme === undefined) return malformed('X-Forwarded-Proto');
  const isEncrypted = scheme === 'https';
  if (kind === 'ext-authz') {
    const { method } = call;
    return new OriginalRequest(call, { method, target: target.slice(extAuthzPrefix.length), isEncrypted });
  }
  const method = headers.get('x-forwarded-method');
  if (method === null || !methodGrammar.test(method)) return malformed('X-Forwarded-Method');
  const host = headers.get('x-forwarded-host');
  if (host === null || !hostGrammar.test(host)) return malformed('X-Forwarded-Host');
  const path = headers.get('x-forwarded-uri');
  if (path === null || !targetGrammar.test(path)) return malformed('X-Forwarded-Uri');
  return new OriginalRequest(call, { method, target: path, host, isEncrypted });
}

interface OriginalFields {
  readonly method: string;
  readonly target: string;
  /** Default: the `Host` of the subrequest. */
  readonly host?: string;
  readonly isEncrypted: boolean;
}

/** The original request. A class with lazy members, because one exists per request. */
class OriginalRequest implements ResourceRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: ResourceRequest['headers'] = this;
  readonly isEncrypted: boolean;
  readonly #call: ResourceRequest;
  readonly #host: string | undefined;

  constructor(call: ResourceRequest, { method, target, host, isEncrypted }: OriginalFields) {
    this.method = method;
    this.target = target;
    this.isEncrypted = isEncrypted;
    this.#call = call;
    this.#host = host;
  }

  get url(): string {
    return `${this.isEncrypted ? 'https' : 'http'}://${this.get('host') ?? ''}${this.target}`;
  }

  entries(): Iterable<readonly [string, string]> {
    return this.#call.headers.entries?.() ?? [];
  }

  get(name: string): string | null {
    const host = this.#host;
    return host !== undefined && name.length === 4 && name.toLowerCase() === 'host'
      ? host
      : this.#call.headers.get(name);
  }
}
