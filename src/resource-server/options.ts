import type { Nonces } from '../dpop/nonce.ts';
import type { ReplayStore } from '../dpop/replay.ts';
import type { FailureContext, Reason } from '../failures.ts';
import type { ClientCertificateSource } from '../http/client-certificate.ts';
import type { DpopMode } from '../http/credentials.ts';
import type { Trust } from '../http/trust.ts';
import type { ProofAlg } from '../jose/algorithms.ts';
import type { JwkSet } from '../jose/jwk.ts';
import type { KeySet } from '../keys/key-set.ts';
import type { KeySetEvent } from '../keys/key-set-options.ts';
import type { Fetch } from '../outbound/http-client.ts';
import { checkMembers } from '../policy/members.ts';
import { type ErrorBodyFormat, errorBodyFormats } from '../refusal/error-body.ts';
import type { TokenCacheOptions } from '../token/token-cache.ts';
import type { DenyCheck } from '../token-status/deny-check.ts';
import type { Introspection } from '../token-status/introspection.ts';
import type { IssuerFinder } from './issuer-finder.ts';
import { type IssuerList, isFixed, type ResolveIssuers } from './issuer-list.ts';
import { readIssuerName } from './issuer-name.ts';
import type { Recipients, TokenRuleOptions } from './token-rules.ts';
import type { TrustedIssuer } from './trusted-issuer.ts';

/** How DPoP proofs are judged (RFC 9449). */
export interface DpopOptions {
  /** Default `allowed`: Bearer and DPoP. */
  readonly mode?: DpopMode;
  /** `alg` values accepted in proofs. Default `ES256`. */
  readonly algorithms?: readonly ProofAlg[];
  /** Where used proofs are remembered. Default: the memory of this process. */
  readonly replay?: ReplayStore | 'off';
  /** Nonces of this server, under a secret that instances share. Default: made under a random secret if they are needed. */
  readonly nonces?: Nonces;
  /**
   * `always` demands one of `nonces` in each proof; `after-start` only in a proof that may have been used before this
   * process, or the replay store, was started. Default: `always` with `nonces`, else `after-start`.
   */
  readonly nonceDemand?: 'always' | 'after-start';
}

/** Whether a token must say whom it speaks for. */
export type Subject = 'required' | 'optional';

/** Options of a resource server; `issuer` or `issuers` is needed, and that somebody says whom tokens are for. */
export interface AnyServerOptions<S extends Subject = Subject> extends TokenRuleOptions {
  /** Whether `sub` must be there (RFC 9068 §2.2); if not, `claims.sub` may be `undefined`. Default `required`. */
  readonly subject?: S;
  /** The one issuer: in full, as `iss` has it (`https://idp.example/`), or by domain (`idp.example`). */
  readonly issuer?: string;
  /** Keys of `issuer` that are at hand: a key set, or a JWK set. Default: those that it publishes. */
  readonly keys?: KeySet | JwkSet;
  /** Where the keys of `issuer` are, without discovery: an https URL. Default: what its discovery document says. */
  readonly jwksUri?: string;
  /**
   * Allows plain http for `issuer` and its key addresses: for a provider without TLS on a developer's machine or inside a
   * cluster. Whoever is on the way can put in keys of their own. How TLS is checked does not change. `onEvent` is told of
   * it once. Default `false`.
   */
  readonly insecure?: boolean;
  /** Several issuers; or a function that names them for a request; or what finds the issuer of a token. With none, every token is refused as `invalid_issuer`. */
  readonly issuers?: IssuerList | ResolveIssuers | IssuerFinder;
  /**
   * Key sets that are open at the same time, if `issuers` is a function or has `find`; more are open only while requests wait for
   * their keys. Beyond it, the key set idle for the longest time is closed; when it is used again, it continues with the
   * keys that it had. Default 1000.
   */
  readonly maxOpenIssuers?: number;
  /** Fetches keys instead of the built-in client, within the same limits. Default: `node:https`, or undici if the environment sets a proxy. */
  readonly fetch?: Fetch;
  /** PEM certificates trusted besides the roots of Node when keys are fetched. Default: none. */
  readonly ca?: string;
  /** Seconds beyond freshness that keys may be used while fetches fail, 0 to 86400. Default 3600. */
  readonly keysStale?: number;
  /** Called for events of key sets, and for every refusal. Errors it throws, or rejects with, are ignored. */
  readonly onEvent?: (event: ResourceServerEvent) => unknown;
  readonly dpop?: DpopOptions;
  /** How many verified tokens are kept, from the second time that they come. Default: 10 000 in at most 64 MiB. */
  readonly tokenCache?: TokenCacheOptions | 'off';
  /** Peers whose X-Forwarded-* headers are believed. Default `none`. */
  readonly trustProxy?: Trust;
  /**
   * Origin (and prefix) under which clients call, as in `https://api.example`. DPoP proofs are held against it, whatever
   * Host and X-Forwarded-* say. Default: what the request says.
   */
  readonly externalUrl?: string;
  /**
   * Where client certificates are found that tokens are bound to (RFC 8705): `tls`, the connection to this server, or
   * `header`, the Client-Cert (RFC 9440) of a proxy in `trustProxy`. Default: nowhere, and such tokens are refused.
   */
  readonly clientCertificate?: ClientCertificateSource;
  /** Judges opaque tokens by asking their issuer (RFC 7662); closed by whoever made it. Default: they are refused. */
  readonly introspection?: Introspection;
  /** Refuses tokens by `jti`, `sub` or `kid`, at every request: a deny list, or what asks one of your own. Default: none. */
  readonly denyList?: DenyCheck;
  /**
   * Form of error bodies. Your own function is called once for each response that differs; if it fails, the form is `detail`.
   * Default `detail`.
   */
  readonly errorBody?: keyof typeof errorBodyFormats | ErrorBodyFormat;
  /** `full` challenges with parameters, or `bare`: Bearer without any. Default `full`. */
  readonly challenge?: 'full' | 'bare';
  /** Status of refusals with `insufficient_scope`. Default 403 (RFC 6750 §3.1). */
  readonly insufficientScopeStatus?: 401 | 403;
  /** Seconds since the epoch. Default: the clock of this machine. */
  readonly now?: () => number;
}

/** An issuer whose own rules say whom its tokens are for. */
export type IssuerWithRecipients = TrustedIssuer & { readonly rules: Recipients };

/**
 * Options of {@link createResourceServer}: `issuer` or `issuers`; `audience` or `clientIds`, here or in the rules of each
 * issuer; all else has a default.
 */
export type ResourceServerOptions<S extends Subject = 'required'> = AnyServerOptions<S> &
  ({ readonly issuers: readonly IssuerWithRecipients[] | IssuerFinder<IssuerWithRecipients> } | Recipients);

/** What happens in a resource server, for logs and metrics; never a token, a proof or a key. */
export type ResourceServerEvent =
  /** Of a key set that the server opened. */
  | { readonly type: 'keys'; readonly issuer: string; readonly event: Exclude<KeySetEvent, { type: 'insecure' }> }
  /** Plain http is allowed for an issuer and its keys. Told once, when its key set is opened. */
  | { readonly type: 'insecure'; readonly issuer: string }
  /** `context` has facts for the operator; `cause` what went wrong where the reason is `unexpected` or a store failed. */
  | {
      readonly type: 'refused';
      readonly reason: Reason;
      readonly method: string;
      readonly context: FailureContext | undefined;
      readonly cause: unknown;
    };

/** What each option may be, and how that is said: a member that is not here is none. */
type Checks<O> = Readonly<Record<keyof O, readonly [isRight: (value: unknown) => boolean, fix: string]>>;

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';
const isFunction = (value: unknown): boolean => typeof value === 'function';
const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null;
const isAny = (): boolean => true; // its reader checks it
const oneOf = (...values: readonly unknown[]): readonly [(value: unknown) => boolean, string] => [
  (value) => values.includes(value),
  `write ${values.join(' or ')}`,
];
const hasMethod = (name: string) => (value: unknown) =>
  isObject(value) && isFunction(Reflect.get(value as object, name));

/** Checks of {@link ResourceServerOptions}, by name: each option has one. */
export const serverChecks: Checks<AnyServerOptions> = {
  issuer: [isText, 'write a domain, as in idp.example, or the issuer in full, as in https://idp.example/'],
  keys: [isObject, 'write a key set, or a JWK set: { keys: [...] }'],
  issuers: [
    (value) => isFunction(value) || hasMethod('find')(value),
    'write a list, a function that gives one, or an object with a function find(iss, request)',
  ],
  maxOpenIssuers: [
    (value) => Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= 100_000,
    'write a whole number of key sets, 1 to 100000',
  ],
  jwksUri: [isText, 'write the https URL of the JWK set'],
  insecure: oneOf(true, false),
  audience: [isAny, ''],
  clientIds: [isAny, ''],
  algorithms: [isAny, ''],
  clockTolerance: [isAny, ''],
  subject: [isAny, ''],
  scopeClaim: [isAny, ''],
  permissionsClaim: [isAny, ''],
  profile: [isAny, ''],
  clientCertificate: oneOf('tls', 'header'),
  introspection: [hasMethod('introspect'), 'write createIntrospection({ endpoint, issuer, clientId, clientSecret })'],
  denyList: [hasMethod('denies'), 'write createDenyList(), or an object with a function denies(claims, kid)'],
  dpop: [isObject, "write an object, as in { mode: 'required' }"],
  tokenCache: [(value) => value === 'off' || isObject(value), 'write off, or an object with maxEntries or maxBytes'],
  fetch: [isFunction, 'write a function such as the global fetch'],
  ca: [isText, 'write certificates in PEM'],
  keysStale: [
    (value) => typeof value === 'number' && value >= 0 && value <= 86_400,
    'write seconds beyond freshness, 0 to 86400',
  ],
  onEvent: [isFunction, 'write a function'],
  trustProxy: [
    (value) => value === 'none' || value === 'all' || Array.isArray(value),
    "write 'none', 'all', or a list of addresses and CIDR ranges such as ['10.0.0.0/8']; true is none of these",
  ],
  externalUrl: [isText, 'write the origin that clients call, as in https://api.example'],
  errorBody: [
    (value) => isFunction(value) || (typeof value === 'string' && Object.hasOwn(errorBodyFormats, value)),
    `write ${Object.keys(errorBodyFormats).join(', ')}, or a function`,
  ],
  challenge: oneOf('full', 'bare'),
  insufficientScopeStatus: oneOf(401, 403),
  now: [isFunction, 'write a function that gives seconds since the epoch'],
};

/** Checks of {@link DpopOptions}. */
export const dpopChecks: Checks<DpopOptions> = {
  mode: oneOf('off', 'allowed', 'required'),
  algorithms: [isAny, ''],
  replay: [
    (value) => value === 'off' || hasMethod('witness')(value),
    'write off, or a store: createMemoryReplayStore(), await createRedisReplayStore(url)',
  ],
  nonces: [hasMethod('issue'), 'write createNonces({ secret })'],
  nonceDemand: oneOf('always', 'after-start'),
};

/** Throws `TypeError` for options that cannot work, and names the fix; what is `undefined` counts as absent. */
export function checkOptions(options: AnyServerOptions): void {
  if (!isObject(options)) throw new TypeError('createResourceServer: write an object with issuer and audience');
  check('createResourceServer', options, serverChecks);
  check('dpop', options.dpop ?? {}, dpopChecks);
  const { issuer, issuers } = options;
  if ((issuer === undefined) === (issuers === undefined)) {
    throw new TypeError("issuer: write issuer: 'https://idp.example/', or issuers with a list; one of the two");
  }
  for (const name of ['keys', 'jwksUri', 'insecure'] as const) {
    if (options[name] !== undefined && issuer === undefined) {
      throw new TypeError(`${name}: write it beside issuer; in issuers each has its own: [{ issuer, ${name} }]`);
    }
  }
  if (options.maxOpenIssuers !== undefined && (issuers === undefined || isFixed(issuers))) {
    throw new TypeError('maxOpenIssuers: it is for issuers as a function or with find; the keys of a list stay open');
  }
  checkIntrospection(options);
  if (options.dpop?.nonceDemand === 'always' && options.dpop.nonces === undefined) {
    throw new TypeError('nonces: nonceDemand always needs them; write createNonces({ secret })');
  }
  if (options.fetch !== undefined && options.ca !== undefined) {
    throw new TypeError('ca: it is for the built-in client; let your fetch trust the certificate');
  }
}

/** What a fixed list of issuers leaves out can be found out now; a resolver is read with each request. */
function checkIntrospection({ introspection, issuer, insecure, issuers = [] }: AnyServerOptions): void {
  if (introspection === undefined || !isFixed(issuers)) return;
  const named = [...(issuer === undefined ? [] : [issuer]), ...issuers];
  const names = named.map((each) => (typeof each === 'string' ? readIssuerName(each, insecure) : each.issuer));
  if (names.length === 0 || names.includes(introspection.issuer)) return;
  throw new TypeError(
    'introspection: its issuer is not among the issuers; add it, or leave issuers: [] if all tokens are opaque',
  );
}

function check<O extends object>(what: string, options: O, checks: Checks<O>): void {
  checkMembers(what, options, Object.keys(checks));
  // The entries of an object of its own.
  for (const [name, [isRight, fix]] of Object.entries<Checks<O>[keyof O]>(checks)) {
    const value: unknown = Reflect.get(options, name);
    if (value !== undefined && !isRight(value)) throw new TypeError(`${name}: ${fix}`);
  }
}
