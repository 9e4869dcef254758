import { LRUCache } from 'lru-cache';
import { isThenable } from '../../attempt.ts';
import type { ExternalUrl } from '../../http/external-url.ts';
import type { ResourceRequest } from '../../http/request.ts';
import { algorithms } from '../../jose/jws.ts';
import { pickByPlatform } from '../../platform.ts';
import { Refused } from '../../refused.ts';
import type { AccessTokenRules, IssuerRules } from '../../token/access-token.ts';
import type { IssuerList, TrustedIssuer } from './trusted-issuer.ts';

/**
 * Names the issuers that are trusted for a request. An issuer is read once for each object, so the same objects should
 * come back each time; what is wrong with one is thrown at the request.
 */
export type ResolveIssuers = (request: IssuerRequest) => IssuerList | Promise<IssuerList>;

/** Finder of the issuer of a token, for servers with many tenants. */
export interface IssuerFinder<I extends string | TrustedIssuer = string | TrustedIssuer> {
  /**
   * Called with the `iss` of a token, which is not verified: any client can write any string there. Returns the issuer, or
   * `undefined` if it is not trusted; or a promise, which must resolve within 3 seconds. The result is used for 5 seconds, for
   * all requests with equal values of what was read of `request`, so it must depend on the two parameters only. Errors are
   * not cached.
   */
  find(iss: string, request: IssuerRequest): I | undefined | PromiseLike<I | undefined>;
}

export interface IssuerSearchOptions extends Pick<AccessTokenRules, 'certificates' | 'headers'> {
  readonly finder: IssuerFinder;
  readonly readEntry: (entry: string | TrustedIssuer) => IssuerRules;
  /** Issuer that a token names; `undefined` if it is refused regardless of its issuer. */
  readonly nameOf: (token: string) => string | undefined;
  readonly maxFound: number;
}

type Search = (
  request: ResourceRequest,
  url: ExternalUrl,
  token: string,
) => AccessTokenRules | Promise<AccessTokenRules | Refused>;

interface Found {
  readonly rules: AccessTokenRules;
  /** Seconds on a clock that never steps back. */
  readonly until: number;
}

/** On workerd, a promise that another request has made may never settle. */
const areCallsShared = pickByPlatform({ workerd: false, others: true });
const foundSeconds = 5;
const timeoutSeconds = 3;
/** Characters of the keys of each cache: names and parts of requests are written by anyone. */
const maxKeyLength = 4 * 1024 * 1024;
/** Characters that an entry counts in addition to its key. */
const lengthPerEntry = 256;
/** Maximum number of request parts that a finder may read. A finder that reads more is called for each request. */
const maxParts = 16;

/** Creates the search for a finder: one call for a name at a time, and its result cached for a short time. */
export function createIssuerSearch(options: IssuerSearchOptions): Search {
  const { finder, readEntry, nameOf, maxFound, ...shared } = options;
  const keyed = { maxSize: maxKeyLength, sizeCalculation: (_: unknown, key: string) => key.length + lengthPerEntry };
  const found = new LRUCache<string, Found>({ max: maxFound, ...keyed });
  // Apart: names that are made up push no issuer out.
  const unknown = new LRUCache<string, Found>(keyed);
  const pending = new Map<string, Promise<AccessTokenRules | Refused>>();
  const none: AccessTokenRules = { issuers: new Map(), algorithms: new Set(algorithms.keys()), ...shared };
  /** Parts read so far: requests that differ in them may have different issuers. */
  const parts = new Set<string>();

  const note = (part: string): void => {
    if (parts.has(part) || parts.size > maxParts) return;
    parts.add(part);
    found.clear();
    unknown.clear();
  };

  const keyOf = (iss: string, request: IssuerRequest): string | undefined =>
    parts.size > maxParts ? undefined : JSON.stringify([iss, ...[...parts].map((part) => readPart(request, part))]);

  const search: Search = (request, url, token) => {
    const iss = nameOf(token);
    // The refusal of such a token does not depend on its issuer.
    if (iss === undefined) return none;
    const described = describeRequest(request, url);
    const key = keyOf(iss, described);
    if (key === undefined) return call(iss, described);
    const known = found.get(key) ?? unknown.get(key);
    if (known !== undefined && performance.now() / 1000 < known.until) return known.rules;
    const running = pending.get(key);
    if (running === undefined) return call(iss, described);
    const before = parts.size;
    return running.then((rules) => (parts.size === before ? rules : search(request, url, token)));
  };

  const call = (iss: string, request: IssuerRequest): ReturnType<Search> => {
    const result: unknown = finder.find(iss, watchReads(request, note));
    if (!isThenable(result)) return keep(iss, request, result);
    const key = keyOf(iss, request);
    const settled = withinTime(result).then((entry) => (entry instanceof Refused ? entry : keep(iss, request, entry)));
    if (key === undefined || !areCallsShared) return settled;
    pending.set(key, settled);
    return settled.finally(() => pending.delete(key));
  };

  const keep = (iss: string, request: IssuerRequest, entry: unknown): AccessTokenRules => {
    const issuer = entry === undefined || entry === null ? undefined : readEntry(entry as string | TrustedIssuer); // it throws for what is neither
    // A finder that ignores case, for example: `iss` is compared byte for byte.
    const isFound = issuer?.issuer === iss;
    const rules = isFound ? { issuers: new Map([[iss, issuer]]), algorithms: issuer.algorithms, ...shared } : none;
    const key = keyOf(iss, request);
    if (key === undefined) return rules;
    found.delete(key);
    (isFound ? found : unknown).set(key, { rules, until: performance.now() / 1000 + foundSeconds });
    return rules;
  };

  return search;
}

function watchReads(request: IssuerRequest, note: (part: string) => void): IssuerRequest {
  return {
    get method() {
      note(' method');
      return request.method;
    },
    get url() {
      note(' url');
      return request.url;
    },
    headers: {
      get(name) {
        note(name.toLowerCase());
        return request.headers.get(name);
      },
    },
  };
}

/** No header has a space in its name. */
function readPart(request: IssuerRequest, part: string): string | null {
  if (part === ' method') return request.method;
  return part === ' url' ? request.url : request.headers.get(part);
}

/** A finder that hangs must not hold requests. */
async function withinTime(promised: PromiseLike<unknown>): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((resolve) => {
    const context = { hint: `issuers.find gave no result within ${timeoutSeconds} s` };
    timer = setTimeout(() => resolve(new Refused('keys_unavailable', { context })), timeoutSeconds * 1000);
  });
  try {
    return await Promise.race([promised, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Request as a resolver gets it: without credentials, so that no token can choose who is trusted. */
export interface IssuerRequest {
  readonly method: string;
  /** URL as the client requested it, with trusted proxies applied; without query and fragment. */
  readonly url: string;
  /** `authorization` and `dpop` are `null`. */
  readonly headers: ResourceRequest['headers'];
}

/** Describes a request without its credentials. */
export function describeRequest({ method, headers }: ResourceRequest, { origin, path }: ExternalUrl): IssuerRequest {
  return {
    method,
    get url() {
      return `${origin}${path}`;
    },
    headers: { get: (name) => (/^(?:authorization|dpop)$/i.test(name) ? null : headers.get(name)) },
  };
}
