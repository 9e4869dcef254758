import type { Nonces } from '../dpop/nonce.ts';
import type { ReplayStore } from '../dpop/replay.ts';
import type { FailureContext, Reason } from '../failures.ts';
import type { ClientCertificateSource } from '../http/client-certificate.ts';
import type { DpopMode, Scheme } from '../http/credentials.ts';
import type { Trust } from '../http/external-url.ts';
import type { DecryptionOptions } from '../introspection/decryption.ts';
import type { Introspection } from '../introspection/introspection.ts';
import type { ProofAlg } from '../jose/jws.ts';
import type { KeyCache } from '../keys/key-cache.ts';
import type { KeySetEvent } from '../keys/key-set-options.ts';
import {
  callable,
  checkOptionMembers,
  hasFunctions,
  isFunction,
  isObject,
  isText,
  isWithin,
  type OptionMembers,
  oneOf,
} from '../option-members.ts';
import type { Fetch } from '../outbound/http-client.ts';
import type { Unmade } from '../policy/policy.ts';
import { type ErrorBodyFormat, errorBodyFormats } from '../refusal/error-body.ts';
import type { Revocations } from '../revocation/revocations.ts';
import type { TokenCacheOptions } from '../token/token-cache.ts';
import type { IsRevoked } from '../token/withdrawal.ts';
import type { Audit } from './audit.ts';
import type { IssuerFinder } from './issuers/issuer-finder.ts';
import { type Recipients, type Subject, type TokenRuleOptions, tokenRuleMembers } from './issuers/token-rules.ts';
import { type IssuerList, isFixed, readIssuerName, type TrustedIssuer } from './issuers/trusted-issuer.ts';

/** Deviations from RFC 6750. */
export interface RefusalStyle {
  /** Bearer challenges with parameters, or without any. */
  readonly challenge: 'full' | 'bare';
  /** Status of refusals with `insufficient_scope`; 403 in RFC 6750 §3.1. */
  readonly insufficientScopeStatus: 401 | 403;
}

/** Options for DPoP proofs (RFC 9449). */
export interface DpopOptions {
  /** Default `allowed`: Bearer and DPoP. */
  readonly mode?: DpopMode;
  /** `alg` values accepted in proofs. Default `ES256`. */
  readonly algorithms?: readonly ProofAlg[];
  /** Store of used proofs. Default: the memory of this process. */
  readonly replay?: ReplayStore | 'off';
  /** Nonces of this server, under a secret that instances share. Default: made under a random secret if they are needed. */
  readonly nonces?: Nonces;
  /**
   * `always` requires one of `nonces` in each proof; `after-start` only in a proof that may have been used before this
   * process, or the replay store, was started. Default: `always` with `nonces`, else `after-start`.
   */
  readonly nonceDemand?: 'always' | 'after-start';
}

/** Options of a resource server: `issuer`, with `keys`, `jwksUri` and `insecure`, or `issuers`; an audience or `clientIds`. */
export interface AnyServerOptions<S extends Subject = Subject>
  extends TokenRuleOptions,
    Pick<TrustedIssuer, 'keys' | 'jwksUri' | 'insecure'> {
  /** Rule for `sub` (RFC 9068 §2.2); with `optional`, `claims.sub` may be `undefined`. Default: `required`. */
  readonly subject?: S;
  /** The one issuer: in full, as `iss` has it (`https://idp.example/`), or by domain (`idp.example`). */
  readonly issuer?: string;
  /** Several issuers; or what finds the issuer of a token. An empty list only with `introspection`, if all tokens are opaque. */
  readonly issuers?: IssuerList | IssuerFinder;
  /**
   * Key sets that are open at the same time, if `issuers` has `find`; more are open only while requests wait for
   * their keys. Beyond it, the key set idle for the longest time is closed; when it is used again, it continues with the
   * keys that it had. Default 1000.
   */
  readonly maxOpenIssuers?: number;
  /** Fetches keys instead of the built-in client, within the same limits. Default: `node:https`. */
  readonly fetch?: Fetch;
  /** PEM certificates trusted in addition to Node's roots when keys are fetched. Default: none. */
  readonly ca?: string;
  /** Seconds beyond freshness that keys may be used while fetches fail, 0 to 86400. Default 3600. */
  readonly keysStale?: number;
  /**
   * Keeps fetched keys outside of this process (Workers KV, a file, Redis), so that a new one verifies its first token without
   * a fetch. Anyone who can write to it can sign tokens. Default: none.
   */
  readonly keyCache?: KeyCache;
  /** Called for events of key sets, and for every grant and refusal. Errors it throws, or rejects with, are ignored. */
  readonly onEvent?: (event: ResourceServerEvent) => unknown;
  /** Records every decision: {@link createAudit}. While it is unavailable, requests are refused before the token is read. */
  readonly audit?: Pick<Audit, 'isAvailable'> & Partial<Pick<Audit, 'record'>>;
  /** Rules for DPoP (RFC 9449). Default: tokens may be bound. */
  readonly dpop?: DpopOptions;
  /** Limits of the token cache; a token is cached on second use. Default: 10 000 tokens in at most 64 MiB. */
  readonly tokenCache?: TokenCacheOptions | 'off';
  /** Peers whose X-Forwarded-* headers are believed. Default `none`. */
  readonly trustProxy?: Trust;
  /** Origin, and prefix, that DPoP proofs must match, as in `https://api.example`. Default: from the request. */
  readonly externalUrl?: string;
  /**
   * Source of client certificates for bound tokens (RFC 8705): `tls`, the connection to this server, or `header`, the
   * Client-Cert (RFC 9440) of a proxy in `trustProxy`. Default: none, and such tokens are refused.
   */
  readonly clientCertificate?: ClientCertificateSource;
  /** Introspection of opaque tokens at their issuer (RFC 7662); its creator closes it. Default: they are refused. */
  readonly introspection?: Introspection;
  /** Keys for encrypted tokens. Default: they are refused. */
  readonly decryption?: DecryptionOptions;
  /** Your own check of valid tokens, the last one: an emergency list, a database. Default: none. */
  readonly isRevoked?: IsRevoked;
  /** Ends tokens before they expire: what `createRevocations` returned. Several servers may share it. Default: none. */
  readonly revocations?: Revocations;
  /** Form of error bodies. Your own function is called once for each response that differs. Default, and if it fails: `detail`. */
  readonly errorBody?: keyof typeof errorBodyFormats | ErrorBodyFormat;
  /** Deviations of challenges and statuses from RFC 6750, for clients that depend on them. Default: none. */
  readonly refusalStyle?: RefusalStyle;
  /** Seconds since the epoch. Default: the clock of this machine. */
  readonly now?: () => number;
}

/** An issuer whose own rules say whom its tokens are for. */
export type IssuerWithRecipients = TrustedIssuer & { readonly rules: Recipients };

/** One issuer, or several. */
type Issuers =
  | { readonly issuers: IssuerList | IssuerFinder; readonly issuer?: OneOfTwo | undefined }
  | { readonly issuer: string; readonly issuers?: OneOfTwo | undefined };
type OneOfTwo = Unmade<'write issuer, or issuers with a list: one of the two'>;

/** Options of {@link createResourceServer}. `audience` or `clientIds` may be in the rules of each issuer instead. */
export type ResourceServerOptions<S extends Subject = 'required'> = AnyServerOptions<S> &
  (
    | {
        readonly issuers: readonly IssuerWithRecipients[] | IssuerFinder<IssuerWithRecipients>;
        readonly issuer?: OneOfTwo | undefined;
      }
    | (Recipients & Issuers)
  );

/** An event of a resource server, for logs and metrics. It never holds a token, a proof or a key. */
export type ResourceServerEvent =
  | {
      /** Event of a key set that the server opened. */
      readonly type: 'keys';
      /** Issuer of the keys. */
      readonly issuer: string;
      /** The event of the key set. */
      readonly event: Exclude<KeySetEvent, { type: 'insecure' }>;
    }
  | {
      /** Plain http is allowed for an issuer and its keys. Emitted once, when its key set is opened. */
      readonly type: 'insecure';
      /** Issuer with plain http. */
      readonly issuer: string;
    }
  | {
      /** A request was admitted. */
      readonly type: 'granted';
      /** Method of the request. */
      readonly method: string;
      /** Scheme of its credentials. */
      readonly scheme: Scheme;
    }
  | {
      /** A request was refused. */
      readonly type: 'refused';
      /** Reason of the refusal. */
      readonly reason: Reason;
      /** Method of the request. */
      readonly method: string;
      /** Path of the URL. A segment of more than 32 characters, or with an `@`, is `…`. */
      readonly path: string;
      /** Facts for the operator, such as `expected` and `received` of the check that failed. */
      readonly context: FailureContext | undefined;
      /** The error, if the reason is `unexpected` or a store failed. */
      readonly cause: unknown;
    };

export type Emit = (event: ResourceServerEvent) => void;

const isRefusalStyle = (value: unknown): boolean => {
  const { challenge, insufficientScopeStatus, ...others } = Object(value) as Record<string, unknown>;
  const isKnown = ['full', 'bare'].includes(String(challenge)) && [401, 403].includes(Number(insufficientScopeStatus));
  return isKnown && Object.keys(others).length === 0;
};

export const serverChecks: OptionMembers<AnyServerOptions> = {
  issuer: [isText, 'write a domain, as in idp.example, or the issuer in full; several issuers go into issuers: [ … ]'],
  keys: [isObject, 'write a key set, or a JWK set: { keys: [...] }'],
  issuers: [
    hasFunctions('find'),
    'write a list, or an object with a function find(iss, request); a function that gives a list was removed',
  ],
  maxOpenIssuers: [
    (value) => Number.isSafeInteger(value) && isWithin(1, 100_000)(value),
    'write a whole number of key sets, 1 to 100000',
  ],
  jwksUri: [isText, 'write the https URL of the JWK set'],
  insecure: oneOf(true, false),
  ...tokenRuleMembers,
  clientCertificate: oneOf('tls', 'header'),
  introspection: [
    hasFunctions('introspect'),
    'write createIntrospection({ endpoint, issuer, clientId, clientSecret }); a list was removed: create a server for each',
  ],
  decryption: [isObject, 'write { keys: [privateKey] }'],
  isRevoked: [isFunction, 'write a function (token) => boolean, or of a promise of it'],
  revocations: [isObject, 'write createRevocations()'],
  dpop: [isObject, "write an object, as in { mode: 'required' }"],
  tokenCache: [(value) => value === 'off' || isObject(value), 'write off, or an object with maxEntries or maxBytes'],
  fetch: [isFunction, 'write a function such as the global fetch'],
  ca: [isText, 'write certificates in PEM'],
  keysStale: [isWithin(0, 86_400), 'write seconds beyond freshness, 0 to 86400'],
  keyCache: [hasFunctions('read', 'write'), 'write { read(url), write(url, keys) }'],
  onEvent: callable,
  audit: [hasFunctions('isAvailable'), "write createAudit({ destination: '/var/log/audit.jsonl', identitySecret })"],
  trustProxy: [
    (value) => value === 'none' || value === 'all' || Array.isArray(value),
    "write 'none', 'all', or a list of addresses and CIDR ranges such as ['10.0.0.0/8']; true is none of these",
  ],
  externalUrl: [isText, 'write the origin that clients call, as in https://api.example'],
  errorBody: [
    (value) => isFunction(value) || (typeof value === 'string' && Object.hasOwn(errorBodyFormats, value)),
    `write ${Object.keys(errorBodyFormats).join(', ')}, or a function`,
  ],
  refusalStyle: [isRefusalStyle, "write { challenge: 'full' or 'bare', insufficientScopeStatus: 401 or 403 }"],
  now: [isFunction, 'write a function that gives seconds since the epoch'],
};

export const dpopChecks: OptionMembers<DpopOptions> = {
  mode: oneOf('off', 'allowed', 'required'),
  algorithms: true,
  replay: [
    (value) => value === 'off' || hasFunctions('witness')(value),
    'write off, or a store: createMemoryReplayStore(), await createRedisReplayStore(url)',
  ],
  nonces: [hasFunctions('issue'), 'write createNonces({ secret })'],
  nonceDemand: oneOf('always', 'after-start'),
};

/** Throws `TypeError` for options that cannot work, and names the fix; what is `undefined` counts as absent. */
export function checkOptions(options: AnyServerOptions): void {
  if (!isObject(options)) throw new TypeError('createResourceServer: write an object with issuer and audience');
  checkOptionMembers<AnyServerOptions>('createResourceServer', options, serverChecks);
  checkOptionMembers<DpopOptions>('dpop', options.dpop ?? {}, dpopChecks);
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
    throw new TypeError('maxOpenIssuers: it is for issuers with find; the keys of a list stay open');
  }
  checkIntrospection(options);
  if (options.dpop?.nonceDemand === 'always' && options.dpop.nonces === undefined) {
    throw new TypeError('nonces: nonceDemand always needs them; write createNonces({ secret })');
  }
  if (options.fetch !== undefined && options.ca !== undefined) {
    throw new TypeError('ca: it is for the built-in client; let your fetch trust the certificate');
  }
}

/** Throws `TypeError` for a server that would refuse every token, such as one whose list of issuers was not loaded. */
export function requireIssuers({ issuers, introspection }: AnyServerOptions): void {
  if (!isFixed(issuers) || issuers.length > 0 || introspection !== undefined) return;
  throw new TypeError('issuers: name at least one; an empty list is only for introspection, if all tokens are opaque');
}

/** Only a list of issuers can be checked now. */
function checkIntrospection({ introspection, issuer, insecure, issuers = [] }: AnyServerOptions): void {
  if (introspection === undefined || !isFixed(issuers)) return;
  const named = [...(issuer === undefined ? [] : [issuer]), ...issuers];
  const names = named.map((each) => (typeof each === 'string' ? readIssuerName(each, insecure) : each.issuer));
  if (names.length === 0 || names.includes(introspection.issuer)) return;
  throw new TypeError(
    'introspection: its issuer is not among the issuers; add it, or leave issuers: [] if all tokens are opaque',
  );
}
