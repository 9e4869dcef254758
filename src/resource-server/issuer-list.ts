import { LRUCache } from 'lru-cache';
import type { ExternalUrl } from '../http/external-url.ts';
import type { ResourceRequest } from '../http/request.ts';
import type { JsonObject } from '../jose/json.ts';
import { readWellKnown } from '../keys/discovery.ts';
import type { KeySet, KeySetState, ResumableKeySet } from '../keys/key-set.ts';
import { checkJwksUri } from '../keys/key-set-options.ts';
import { createKeySetPool } from '../keys/key-set-pool.ts';
import { after } from '../maybe-promise.ts';
import { ProviderError } from '../outbound/provider-error.ts';
import type { AccessTokenRules, IssuerRules } from '../token/access-token.ts';
import type { CertificateBinding } from '../token/confirmation.ts';
import { readAlgorithms, readRecipients, readTokenRules, type TokenRuleOptions } from './token-rules.ts';
import { type KeySource, readIssuer, type TrustedIssuer } from './trusted-issuer.ts';

/** Issuers by name, or with keys and rules of their own. */
export type IssuerList = readonly (string | TrustedIssuer)[];

/** What a resolver sees of a request: no credentials, so that no token can choose who is trusted. */
export interface IssuerRequest {
  readonly method: string;
  /** As the client called it, proxies that are trusted taken into account; without query and fragment. */
  readonly url: string;
  /** `authorization` and `dpop` are `null`. */
  readonly headers: ResourceRequest['headers'];
}

/**
 * Names the issuers that are trusted for a request. An issuer is read once for each object, so the same objects should
 * come back each time; what is wrong with one is thrown at the request.
 */
export type ResolveIssuers = (request: IssuerRequest) => IssuerList | Promise<IssuerList>;

/** The issuers of one resource server. */
export interface Issuers {
  /** Those of a request. Throws, or rejects with, what the resolver does; `TypeError` for a list that cannot work. */
  find(request: ResourceRequest, url: ExternalUrl): AccessTokenRules | Promise<AccessTokenRules>;
  /** Called after a token of the issuer was verified. */
  confirm(issuer: IssuerRules): void;
  /** What challenges name: every audience that is accepted, else every issuer, as far as known before a request. */
  readonly realm: string;
  /** Resolves when tokens of all of them can be judged; rejects with `ProviderError`. */
  ready(): Promise<void>;
  /** Closes the key sets that were opened here. */
  close(): void;
}

/** What the issuers are made of. */
export interface IssuersOptions {
  readonly issuers: IssuerList | ResolveIssuers;
  /** For issuers that do not say otherwise. */
  readonly rules: TokenRuleOptions;
  readonly openKeys: (source: KeySource, state?: KeySetState) => ResumableKeySet;
  /** Key sets that a function's issuers may have open at the same time. Default 1000. */
  readonly maxOpen?: number | undefined;
  /** Whether tokens may be bound to client certificates. Default `off`. */
  readonly certificates?: CertificateBinding;
}

interface KnownList {
  readonly entries: IssuerList;
  readonly rules: AccessTokenRules;
  /** When all entries were compared, in seconds. */
  comparedAt: number;
}

/** Headers of access tokens that are kept: an issuer writes one for each of its keys. */
const keptHeaders = 1000;
/** Issuers whose rules are kept, for each key set that may be open: rules are small. */
const keptPerOpen = 10;
/** Entries of a list that are compared at each request. Those of a longer list are compared once in a second. */
const comparedEntries = 64;

/** Reads the issuers. Throws `TypeError` for a list that cannot work; that of a resolver is read with each request. */
export function createIssuers(options: IssuersOptions): Issuers {
  return typeof options.issuers === 'function'
    ? createResolvedIssuers(options, options.issuers)
    : createFixedIssuers(options, options.issuers);
}

function createFixedIssuers(
  { rules: defaults, openKeys, certificates = 'off' }: IssuersOptions,
  entries: IssuerList,
): Issuers {
  const opened: ResumableKeySet[] = [];
  const open = (source: KeySource): KeySet => {
    const keys = openKeys(source);
    opened.push(keys);
    return keys;
  };
  const readEntry: ReadEntry = (entry) => readIssuer(entry, { options: defaults }, open);
  const rules = readList(entries, { readEntry, defaults, certificates, headers: createHeaders() });
  const all = [...rules.issuers.values()];
  // With no issuer at all every token is refused; what is missing is said all the same.
  const isSaid = defaults.audience !== undefined || defaults.clientIds !== undefined;
  const own = all.length === 0 || isSaid ? [...readRecipients(defaults).audiences] : [];
  const audiences = new Set([...own, ...all.flatMap((each) => [...each.audiences])]);
  return {
    find: () => rules,
    confirm: () => undefined,
    realm: [...(audiences.size > 0 ? audiences : rules.issuers.keys())].join(' '),
    ready: async () => void (await Promise.all(all.map(({ keys }) => awaitKeys(keys)))),
    close() {
      for (const keys of opened) keys.close();
    },
  };
}

function createResolvedIssuers(options: IssuersOptions, resolve: ResolveIssuers): Issuers {
  const { rules: defaults, openKeys, certificates = 'off', maxOpen = 1000 } = options;
  const pool = createKeySetPool({ maxOpen, open: openKeys });
  const open = (source: KeySource): KeySet => pool.keysOf(readPlace(source), source);
  const rules = { options: defaults, rules: readTokenRules(defaults) };
  const readEntry = createEntryReader((entry) => readIssuer(entry, rules, open), maxOpen * keptPerOpen);
  const headers = createHeaders();
  const lists = new WeakMap<IssuerList, KnownList>();

  /** A list that is the same as before, entry for entry: it may have been changed in place. */
  const readKnownList = (entries: IssuerList): AccessTokenRules => {
    const known = lists.get(entries);
    const seconds = performance.now() / 1000;
    if (known !== undefined && isSame(known, entries, seconds)) return known.rules;
    const rules = readList(entries, { readEntry, defaults, certificates, headers });
    lists.set(entries, { entries: [...entries], rules, comparedAt: seconds });
    return rules;
  };

  return {
    find: (request, url) => after(resolve(withoutCredentials(request, url)), readKnownList, undefined),
    confirm: ({ keys }) => pool.confirm(keys),
    realm: [...rules.rules.audiences].join(' '),
    ready: async () => undefined,
    close: () => pool.close(),
  };
}

/** Reads each name once, and each object once. */
function createEntryReader(read: ReadEntry, max: number): ReadEntry {
  const byName = new LRUCache<string, IssuerRules>({ max });
  const byObject = new WeakMap<TrustedIssuer, IssuerRules>();
  return (entry) => {
    const known = typeof entry === 'string' ? byName.get(entry) : byObject.get(entry);
    if (known !== undefined) return known;
    const rules = read(entry);
    if (typeof entry === 'string') byName.set(entry, rules);
    else byObject.set(entry, rules);
    return rules;
  };
}

/** Names the place of keys: an issuer may publish others elsewhere. Throws `TypeError` for a place that cannot work. */
function readPlace({ issuer, jwksUri, insecure = false }: KeySource): string {
  if (jwksUri === undefined) readWellKnown(issuer, insecure);
  else checkJwksUri(jwksUri, insecure);
  // The usual place takes no memory of its own, and is not a JSON array.
  return jwksUri === undefined && !insecure ? issuer : JSON.stringify([issuer, jwksUri, insecure]);
}

/** Headers of verified tokens. */
function createHeaders(): LRUCache<string, JsonObject> {
  return new LRUCache({ max: keptHeaders });
}

type ReadEntry = (entry: string | TrustedIssuer) => IssuerRules;

interface ListParts extends Pick<AccessTokenRules, 'certificates' | 'headers'> {
  readonly readEntry: ReadEntry;
  readonly defaults: TokenRuleOptions;
}

function readList(entries: IssuerList, { readEntry, defaults, ...shared }: ListParts): AccessTokenRules {
  if (!Array.isArray(entries)) throw new TypeError('issuers: write a list, or a function that gives one');
  const issuers = new Map<string, IssuerRules>();
  // Where nobody is trusted the issuer is what is wrong, not the algorithm.
  const algorithms = new Set(entries.length === 0 ? readAlgorithms(defaults.algorithms) : []);
  for (const entry of entries) {
    const rules = readEntry(entry);
    if (issuers.has(rules.issuer)) throw new TypeError('issuers: name each issuer once');
    issuers.set(rules.issuer, rules);
    for (const alg of rules.algorithms) algorithms.add(alg);
  }
  return { issuers, algorithms, ...shared };
}

/** A list may have been changed in place. */
function isSame(known: KnownList, now: IssuerList, seconds: number): boolean {
  const { entries, comparedAt } = known;
  if (entries.length !== now.length) return false;
  if (entries.length > comparedEntries && seconds < comparedAt + 1) return true;
  known.comparedAt = seconds;
  return entries.every((entry, index) => entry === now[index]);
}

function withoutCredentials({ method, headers }: ResourceRequest, { origin, path }: ExternalUrl): IssuerRequest {
  return {
    method,
    url: `${origin}${path}`,
    headers: { get: (name) => (/^(?:authorization|dpop)$/i.test(name) ? null : headers.get(name)) },
  };
}

async function awaitKeys(keys: KeySet): Promise<void> {
  if ('ready' in keys && typeof keys.ready === 'function') return keys.ready();
  if (keys.usable()) return;
  await keys.refetch();
  if (!keys.usable()) throw new ProviderError('no_usable_keys');
}
