import { AccessError } from '../../failures.ts';
import type { ReadExternalUrl } from '../../http/external-url.ts';
import type { Connection, ResourceRequest } from '../../http/request.ts';
import type { Rule, Rules } from '../rules/rules.ts';
import { readRequestPath } from './request-path.ts';
import { type RequestHost, readOriginHost } from './rule-host.ts';

/** Finds the rule of a request, or the reason why there is none that may be asked. */
export type ChooseRule = (request: ResourceRequest, connection: Connection | undefined) => Rule | AccessError;

/** What a rule does with a request: lets everybody or nobody in, lets this request in unseen, or has its token judged. */
export type Treatment = 'open' | 'deny' | 'preflight' | 'anonymous' | 'judge';

/** Creates the choice among these rules. */
export function createChooseRule(rules: Rules, readExternalUrl: ReadExternalUrl): ChooseRule {
  // Most requests name the host that the one before has named.
  let last = { origin: '', host: readOriginHost('') };
  const readHost = (origin: string): RequestHost => {
    if (origin !== last.origin) last = { origin, host: readOriginHost(origin) };
    return last.host;
  };
  return (request, connection) => {
    const url = readExternalUrl(request, connection);
    if (url instanceof AccessError) return url;
    const host = readHost(url.origin);
    const path = readRequestPath(request.target ?? targetOf(request.url));
    if (path === undefined) return new AccessError('ambiguous_path');
    const rule = rules.find(host, path.segments, request.method);
    if (path.hasEncodedSlash && rule?.encodedSlash !== 'allow') return new AccessError('ambiguous_path');
    const planned = readPlannedMethod(request);
    if (planned === undefined) return rule ?? new AccessError('no_rule');
    // The rule of the call that a browser asks about says whether it may ask.
    const called = rules.find(host, path.segments, planned);
    const asked = called?.preflight === 'allow' && called.access !== 'deny' ? called : rule;
    if (path.hasEncodedSlash && asked?.encodedSlash !== 'allow') return new AccessError('ambiguous_path');
    return asked ?? new AccessError('no_rule');
  };
}

/** What a rule does with a request that it was chosen for. */
export function chooseTreatment({ access, preflight }: Rule, request: ResourceRequest): Treatment {
  if (access === 'open' || access === 'deny') return access;
  if (preflight === 'allow' && readPlannedMethod(request) !== undefined) return 'preflight';
  if (access === 'optional' && isAnonymous(request)) return 'anonymous';
  return 'judge';
}

/** The method that a CORS preflight asks about; `undefined` for any other request (Fetch Standard, CORS-preflight). */
function readPlannedMethod({ method, headers }: ResourceRequest): string | undefined {
  if (method !== 'OPTIONS' || headers.get('origin') === null) return undefined;
  return headers.get('access-control-request-method') ?? undefined;
}

function isAnonymous({ headers }: ResourceRequest): boolean {
  return headers.get('authorization') === null && headers.get('dpop') === null;
}

/** The path and query of a URL as it was written. */
function targetOf(url: string): string {
  const path = url.indexOf('/', url.indexOf('//') + 2);
  return path < 0 ? '/' : url.slice(path);
}
