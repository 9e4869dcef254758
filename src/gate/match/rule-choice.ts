import type { Reason } from '../../core/failures.ts';
import {
  createReadClientAddress,
  type ExternalUrl,
  type ReadClientAddress,
  type ReadExternalUrl,
} from '../../core/http/external-url.ts';
import type { Connection, ResourceRequest } from '../../core/http/request.ts';
import { Refused } from '../../core/refused.ts';
import { ConditionCall, type ConditionTarget } from './condition-call.ts';
import type { GateCors } from './cors.ts';
import {
  describeTarget,
  type RequestHost,
  readHandshakeToken,
  readOriginHost,
  readRequestPath,
  readTarget,
  slashMark,
} from './request-target.ts';
import { anySegment, type RulePattern } from './rule-pattern.ts';
import type { Rule, Rules } from './rules.ts';

export interface Choice {
  readonly rule: Rule;
  readonly request: ResourceRequest;
  readonly externalUrl: ExternalUrl;
  /** True for a preflight that the rule's CORS settings decide. */
  readonly isCorsPreflight: boolean;
}

/** Action of a rule: admit all, refuse all, admit this request without a token, refuse its subprotocols, or validate its token. */
type Treatment = 'open' | 'deny' | 'preflight' | 'anonymous' | 'ambiguous' | 'judge';

export interface ChooseRuleOptions {
  /** CORS settings of rules without their own. */
  readonly cors?: GateCors | undefined;
  /** Default: the address of the connection. */
  readonly readClientAddress?: ReadClientAddress | undefined;
}

/** Creates the function that chooses a rule. Its `peer` is the connection of the proxy that describes the request. */
export function createChooseRule(
  rules: Rules,
  readExternalUrl: ReadExternalUrl,
  { cors: defaultCors, readClientAddress = createReadClientAddress('none') }: ChooseRuleOptions = {},
) {
  // Most requests have the host of the request before.
  let last = { origin: '', host: readOriginHost('') };
  const readHost = (origin: string): RequestHost => {
    if (origin !== last.origin) last = { origin, host: readOriginHost(origin) };
    return last.host;
  };
  return (request: ResourceRequest, connection: Connection | undefined, peer = connection): Choice | Refused => {
    const externalUrl = readExternalUrl(request, connection);
    if (externalUrl instanceof Refused) return externalUrl;
    const refuse = (reason: Reason): Refused => new Refused(reason, { context: describeTarget(request, externalUrl) });
    const host = readHost(externalUrl.origin);
    const path = readRequestPath(request.target ?? readTarget(request.url));
    if (path === undefined) return refuse('ambiguous_path');
    const choose = (rule: Rule | undefined, isCorsPreflight = false): Choice | Refused => {
      if (path.hasEncodedSlash && rule?.encodedSlash !== 'allow') return refuse('ambiguous_path');
      if (rule === undefined) return refuse('no_rule');
      // The upstream would read such a remainder as `//`.
      if (rule.strippedSegments > 0 && path.segments[rule.strippedSegments]?.startsWith(slashMark) === true) {
        return refuse('ambiguous_path');
      }
      const bound = rule.when?.bind?.(host.name, path.segments);
      const target = bound && { host: host.nameAndPort, segments: path.segments, bound, readClientAddress, peer };
      return { rule, request: viewRequest(request, rule, target), externalUrl, isCorsPreflight };
    };
    const rule = rules.find(host, path.segments, request.method);
    const planned = readPlannedMethod(request);
    if (planned === undefined) return choose(rule);
    // The rule of the planned request decides on its preflight.
    const called = rules.find(host, path.segments, planned);
    const cors = called?.cors ?? defaultCors;
    if (cors !== undefined) {
      if (called === undefined || called.access === 'deny') return choose(called);
      if (cors.allows(request.headers.get('origin') ?? '')) return choose(called, true);
    }
    return choose(called?.preflight === 'allow' && called.access !== 'deny' ? called : rule);
  };
}

/** Returns the request as its rule reads it: with the target of its condition, and the token of a browser's WebSocket. */
function viewRequest(request: ResourceRequest, rule: Rule, target: ConditionTarget | undefined): ResourceRequest {
  const { headers } = request;
  const token = (rule.webSocketToken && readHandshakeToken(request))?.token;
  if (token === undefined || headers.get('authorization') !== null) {
    return target === undefined ? request : new RequestView(request, headers, target);
  }
  const get = (name: string) => (name.toLowerCase() === 'authorization' ? `Bearer ${token}` : headers.get(name));
  return new RequestView(request, { get, entries: () => headers.entries?.() ?? [] }, target);
}

/** A class, because an object with a getter costs half a microsecond. */
class RequestView implements ResourceRequest {
  readonly method: string;
  readonly target: string | undefined;
  readonly headers: ResourceRequest['headers'];
  readonly conditionCall: ConditionCall | undefined;
  readonly #request: ResourceRequest;

  constructor(request: ResourceRequest, headers: ResourceRequest['headers'], target: ConditionTarget | undefined) {
    this.method = request.method;
    this.target = request.target;
    this.headers = headers;
    this.conditionCall = target && new ConditionCall(request, target);
    this.#request = request;
  }

  get url(): string {
    return this.#request.url;
  }
}

export function chooseTreatment({ rule, request, isCorsPreflight }: Choice): Treatment {
  const { access, preflight } = rule;
  if (access === 'open') return access;
  if (findDenial(rule, request.method) !== undefined) return 'deny';
  if (isCorsPreflight || (preflight === 'allow' && readPlannedMethod(request) !== undefined)) return 'preflight';
  const offered = rule.webSocketToken && readHandshakeToken(request);
  if (offered !== undefined && offered.token === undefined) return 'ambiguous';
  if (access === 'optional' && isAnonymous(request)) return 'anonymous';
  return 'judge';
}

/** Returns why a rule denies a method. The response to TRACE would show the client what the gate sends to the upstream. */
export function findDenial({ access, exchange, assertion }: Rule, method: unknown): string | undefined {
  if (access === 'deny') return 'has "access": "deny"';
  return method === 'TRACE' && (exchange ?? assertion) !== undefined ? 'sends what TRACE would show' : undefined;
}

/** Reads the planned method of a CORS preflight, which has no body; `undefined` for any other request (Fetch Standard). */
function readPlannedMethod({ method, headers }: ResourceRequest): string | undefined {
  if (method !== 'OPTIONS' || headers.get('origin') === null) return undefined;
  if (headers.get('transfer-encoding') !== null || Number(headers.get('content-length')) !== 0) return undefined;
  return headers.get('access-control-request-method') ?? undefined;
}

function isAnonymous({ headers }: ResourceRequest): boolean {
  return headers.get('authorization') === null && headers.get('dpop') === null;
}

interface Node<R> {
  readonly literals: Map<string, Node<R>>;
  any: Node<R> | undefined;
  /** Rules whose path ends here, by method; {@link otherMethods} has the rule for all others. */
  readonly end: Map<string, R>;
  /** Rules whose path ends with `**` here, likewise. */
  readonly rest: Map<string, R>;
}

/** No rule names this method. */
const otherMethods = '*';

/** Step between the labels of a host and the segments of a path, which never contain a slash. */
const hostEnd = '/';

/** Creates a matcher that finds the most specific rule in a time that does not depend on the number of rules. */
export function createRuleMatcher<R>() {
  const exact = new Map<string, Node<R>>();
  /** Roots by suffix with its dot: `.example` for `*.example`. */
  const wildcards = new Map<string, Node<R>>();
  const everywhere: Node<R> = createNode();
  /** Hosts with bound labels, by label from the right; their paths follow {@link hostEnd}. */
  const bound: Node<R> = createNode();

  const openNode = (host: string, segments: RulePattern['segments']): Node<R> => {
    if (host.includes('{}')) {
      const labels = splitName(host).map((label) => (label === '{}' ? anySegment : label));
      return descend(bound, [...labels, hostEnd, ...segments]);
    }
    const [roots, key] = host.startsWith('*') ? [wildcards, host.slice(1)] : [exact, host];
    const root = roots.get(key) ?? createNode<R>();
    roots.set(key, root);
    return descend(root, segments);
  };

  const findByWildcard = (name: string, segments: readonly string[], method: string): R | undefined => {
    // The longest suffix comes first.
    for (let dot = name.indexOf('.', 1); dot > 0; dot = name.indexOf('.', dot + 1)) {
      const root = wildcards.get(name.slice(dot));
      const found = root && findIn(root, segments, 0, method);
      if (found !== undefined) return found;
    }
    return undefined;
  };

  return {
    /** Adds a rule. If another rule could tie with it, returns that rule and adds nothing. */
    add(pattern: RulePattern, rule: R): R | undefined {
      const { hosts, segments, hasRest } = pattern;
      const nodes =
        hosts.length === 0 ? [descend(everywhere, segments)] : hosts.map((host) => openNode(host, segments));
      const leaves = nodes.map((node) => (hasRest ? node.rest : node.end));
      const methods = pattern.methods.length === 0 ? [otherMethods] : [...pattern.methods];
      if (methods.includes('GET')) methods.push('HEAD');
      const rivals = leaves.flatMap((leaf) => methods.flatMap((method) => leaf.get(method) ?? []));
      if (rivals.length > 0) return rivals[0];
      for (const leaf of leaves) for (const method of methods) leaf.set(method, rule);
      return undefined;
    },
    find({ name, nameAndPort }: RequestHost, segments: readonly string[], method: string): R | undefined {
      const withPort = nameAndPort === name ? undefined : exact.get(nameAndPort);
      const withName = exact.get(name);
      return (
        (withPort && findIn(withPort, segments, 0, method)) ??
        (withName && findIn(withName, segments, 0, method)) ??
        (bound.literals.size === 0
          ? undefined
          : findIn(bound, [...splitName(name), hostEnd, ...segments], 0, method)) ??
        (wildcards.size === 0 ? undefined : findByWildcard(name, segments, method)) ??
        findIn(everywhere, segments, 0, method)
      );
    },
  };
}

/** Splits a host name into its labels from the right. */
function splitName(name: string): readonly string[] {
  return name.split('.').toReversed();
}

function createNode<R>(): Node<R> {
  return { literals: new Map(), any: undefined, end: new Map(), rest: new Map() };
}

/** Returns the node at the end of the steps, and creates what is missing. */
function descend<R>(root: Node<R>, steps: RulePattern['segments']): Node<R> {
  let node = root;
  for (const step of steps) {
    const next: Node<R> = (step === anySegment ? node.any : node.literals.get(step)) ?? createNode();
    if (step === anySegment) node.any = next;
    else node.literals.set(step, next);
    node = next;
  }
  return node;
}

/** Searches segment by segment, literal before `*` before `**`, so the first rule found is the most specific. */
function findIn<R>(node: Node<R>, segments: readonly string[], depth: number, method: string): R | undefined {
  const segment = segments[depth];
  if (segment === undefined) return pick(node.end, method) ?? pick(node.rest, method);
  const literal = node.literals.get(segment);
  const found =
    (literal && findIn(literal, segments, depth + 1, method)) ??
    (node.any && findIn(node.any, segments, depth + 1, method));
  return found ?? pick(node.rest, method);
}

function pick<R>(rules: ReadonlyMap<string, R>, method: string): R | undefined {
  return rules.size === 0 ? undefined : (rules.get(method) ?? rules.get(otherMethods));
}
