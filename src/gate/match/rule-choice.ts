import type { Reason } from '../../failures.ts';
import type { ReadExternalUrl } from '../../http/external-url.ts';
import type { Connection, ResourceRequest } from '../../http/request.ts';
import { Refused } from '../../refused.ts';
import type { GateCors } from '../cors.ts';
import type { Rule, Rules } from '../rules/rules.ts';
import { describeTarget, readTarget } from './refused-target.ts';
import { readRequestPath, slashMark } from './request-path.ts';
import { type RequestHost, readOriginHost } from './rule-host.ts';

export interface Choice {
  readonly rule: Rule;
  readonly request: ResourceRequest;
  /** True for a preflight that the rule's CORS settings decide. */
  readonly isCorsPreflight: boolean;
}

export type ChooseRule = (request: ResourceRequest, connection: Connection | undefined) => Choice | Refused;

/** Action of a rule: admit all, refuse all, admit this request without a token, or validate its token. */
export type Treatment = 'open' | 'deny' | 'preflight' | 'anonymous' | 'judge';

export function createChooseRule(rules: Rules, readExternalUrl: ReadExternalUrl, defaultCors?: GateCors): ChooseRule {
  // Most requests have the host of the request before.
  let last = { origin: '', host: readOriginHost('') };
  const readHost = (origin: string): RequestHost => {
    if (origin !== last.origin) last = { origin, host: readOriginHost(origin) };
    return last.host;
  };
  return (request, connection) => {
    const url = readExternalUrl(request, connection);
    if (url instanceof Refused) return url;
    const refuse = (reason: Reason): Refused => new Refused(reason, { context: { ...describeTarget(request, url) } });
    const host = readHost(url.origin);
    const path = readRequestPath(request.target ?? readTarget(request.url));
    if (path === undefined) return refuse('ambiguous_path');
    const choose = (rule: Rule | undefined, isCorsPreflight = false): Choice | Refused => {
      if (path.hasEncodedSlash && rule?.encodedSlash !== 'allow') return refuse('ambiguous_path');
      if (rule === undefined) return refuse('no_rule');
      // The upstream would read such a remainder as `//`.
      if (rule.strippedSegments > 0 && path.segments[rule.strippedSegments]?.startsWith(slashMark) === true) {
        return refuse('ambiguous_path');
      }
      const bindings = rule.bind?.(host.name, path.segments);
      return { rule, request: bindings === undefined ? request : new BoundRequest(request, bindings), isCorsPreflight };
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

/** A request with the values that its rule binds. A class, because an object with a getter costs half a microsecond. */
class BoundRequest implements ResourceRequest {
  readonly method: string;
  readonly target: string | undefined;
  readonly headers: ResourceRequest['headers'];
  readonly bindings: ReadonlyMap<string, string>;
  readonly #request: ResourceRequest;

  constructor(request: ResourceRequest, bindings: ReadonlyMap<string, string>) {
    this.method = request.method;
    this.target = request.target;
    this.headers = request.headers;
    this.bindings = bindings;
    this.#request = request;
  }

  get url(): string {
    return this.#request.url;
  }
}

export function chooseTreatment(
  { rule: { access, preflight }, isCorsPreflight }: Choice,
  request: ResourceRequest,
): Treatment {
  if (access === 'open' || access === 'deny') return access;
  if (isCorsPreflight || (preflight === 'allow' && readPlannedMethod(request) !== undefined)) return 'preflight';
  if (access === 'optional' && isAnonymous(request)) return 'anonymous';
  return 'judge';
}

/** Reads the planned method of a CORS preflight; `undefined` for any other request (Fetch Standard, CORS-preflight). */
function readPlannedMethod({ method, headers }: ResourceRequest): string | undefined {
  if (method !== 'OPTIONS' || headers.get('origin') === null) return undefined;
  return headers.get('access-control-request-method') ?? undefined;
}

function isAnonymous({ headers }: ResourceRequest): boolean {
  return headers.get('authorization') === null && headers.get('dpop') === null;
}
