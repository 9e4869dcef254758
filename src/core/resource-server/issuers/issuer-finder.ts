import { LRUCache } from 'lru-cache';
import { isThenable, limitTime } from '../../attempt.ts';
import type { ExternalUrl } from '../../http/external-url.ts';
import type { ResourceRequest } from '../../http/request.ts';
import { algorithms } from '../../jose/jws.ts';
import { pickByPlatform } from '../../platform.ts';
import { Refused } from '../../refused.ts';
import type { AccessTokenRules, IssuerRules } from '../../token/access-token.ts';
import type { TrustedIssuer } from './trusted-issuer.ts';

/** Finder of the issuer of a token, for servers with many tenants. */
export interface IssuerFinder<I extends string | TrustedIssuer = string | TrustedIssuer> {
  /**
   * Called with the `iss` of a token, which is not verified: any client can write any string there. Returns the issuer, or
   * `undefined` if it is not trusted; or a promise, which must resolve within 3 seconds. A function with one parameter gets no
   * request, and its result is used for 5 seconds. Any other is called for each request. Errors are not cached.
   */
  find(iss: string, request: IssuerRequest): I | undefined | PromiseLike<I | undefined>;
}

interface IssuerSearchOptions extends Pick<AccessTokenRules, 'certificates' | 'headers'> {
  readonly finder: IssuerFinder;
  readonly readEntry: (entry: string | TrustedIssuer) => IssuerRules;
  /** Issuer that a token names; `undefined` if it is refused regardless of its issuer. */
  readonly nameOf: (token: string) => string | undefined;
  readonly maxFound: number;
}

/** Finds the rules for a token. Throws, or rejects with, what `find` does; `TypeError` for an issuer that cannot work. */
export type IssuerSearch = (
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
/** Characters of the keys of each cache: any client can write names. */
const maxKeyLength = 4 * 1024 * 1024;
/** Characters that an entry counts in addition to its key. */
const lengthPerEntry = 256;

/** Creates the search for a finder: one call for a name at a time, and its result cached for a short time. */
export function createIssuerSearch(options: IssuerSearchOptions): IssuerSearch {
  const { finder, readEntry, nameOf, maxFound, ...shared } = options;
  const keyed = { maxSize: maxKeyLength, sizeCalculation: (_: unknown, key: string) => key.length + lengthPerEntry };
  const found = new LRUCache<string, Found>({ max: maxFound, ...keyed });
  // Apart: names that are made up push no issuer out.
  const unknown = new LRUCache<string, Found>(keyed);
  const pending = new Map<string, Promise<AccessTokenRules | Refused>>();
  const none: AccessTokenRules = { issuers: new Map(), algorithms: new Set(algorithms.keys()), ...shared };
  const isOfName = finder.find.length === 1;
  /** Only the name decides if the result is for other requests too. */
  const callee: { find(iss: string, request?: IssuerRequest): unknown } = finder;

  const keep = (iss: string, entry: unknown): AccessTokenRules => {
    const issuer = entry === undefined || entry === null ? undefined : readEntry(entry as string | TrustedIssuer); // it throws for what is neither
    // A finder that ignores case, for example: `iss` is compared byte for byte.
    const isFound = issuer?.issuer === iss;
    const rules = isFound ? { issuers: new Map([[iss, issuer]]), algorithms: issuer.algorithms, ...shared } : none;
    if (!isOfName) return rules;
    found.delete(iss);
    (isFound ? found : unknown).set(iss, { rules, until: performance.now() / 1000 + foundSeconds });
    return rules;
  };

  return (request, url, token) => {
    const iss = nameOf(token);
    // The refusal of such a token does not depend on its issuer.
    if (iss === undefined) return none;
    const known = found.get(iss) ?? unknown.get(iss);
    if (known !== undefined && performance.now() / 1000 < known.until) return known.rules;
    const running = pending.get(iss);
    if (running !== undefined) return running;
    const result = isOfName ? callee.find(iss) : callee.find(iss, describeRequest(request, url));
    if (!isThenable(result)) return keep(iss, result);
    const settled = limitTime<unknown>(result, timeoutSeconds, refuseLate).then((entry) =>
      entry instanceof Refused ? entry : keep(iss, entry),
    );
    if (!isOfName || !areCallsShared) return settled;
    pending.set(iss, settled);
    return settled.finally(() => pending.delete(iss));
  };
}

/** A finder that hangs must not hold requests. */
function refuseLate(): Refused {
  const context = { hint: `issuers.find gave no result within ${timeoutSeconds} s` };
  return new Refused('keys_unavailable', { context });
}

/** Request as `find` gets it: without credentials, so that no token can choose who is trusted. */
export interface IssuerRequest {
  /** HTTP method. */
  readonly method: string;
  /** URL as the client requested it, with trusted proxies applied; without query and fragment. */
  readonly url: string;
  /** `authorization` and `dpop` are `null`. */
  readonly headers: ResourceRequest['headers'];
}

function describeRequest({ method, headers }: ResourceRequest, { origin, path }: ExternalUrl): IssuerRequest {
  return {
    method,
    get url() {
      return `${origin}${path}`;
    },
    headers: { get: (name) => (/^(?:authorization|dpop)$/i.test(name) ? null : headers.get(name)) },
  };
}
