import { LRUCache } from 'lru-cache';
import type { ExternalUrl } from '../http/external-url.ts';
import type { ResourceRequest } from '../http/request.ts';
import type { JsonObject } from '../jose/json.ts';
import type { KeySet, ManagedKeySet } from '../keys/key-set.ts';
import { after } from '../maybe-promise.ts';
import { ProviderError } from '../outbound/provider-error.ts';
import type { AccessTokenRules, IssuerRules } from '../token/access-token.ts';
import type { CertificateBinding } from '../token/confirmation.ts';
import { readAlgorithms, readRecipients, type TokenRuleOptions } from './token-rules.ts';
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
  readonly openKeys: (source: KeySource) => ManagedKeySet;
  /** Whether tokens may be bound to client certificates. Default `off`. */
  readonly certificates?: CertificateBinding;
}

interface KnownList {
  readonly entries: IssuerList;
  readonly rules: AccessTokenRules;
}

/** Headers of access tokens that are kept: an issuer writes one for each of its keys. */
const keptHeaders = 1000;
/** Issuers that a resolver has named and whose keys are kept: the one that was asked for least lately makes room. */
const keptIssuers = 1000;

/** Reads the issuers. Throws `TypeError` for a list that cannot work; that of a resolver is read with each request. */
export function createIssuers({ issuers, rules: defaults, openKeys, certificates = 'off' }: IssuersOptions): Issuers {
  const opened = new LRUCache<string, ManagedKeySet>({
    // A list that is fixed is kept whole.
    max: typeof issuers === 'function' ? keptIssuers : Math.max(issuers.length, 1),
    dispose: (keys) => keys.close(),
  });
  const ownSets = new WeakSet<KeySet>();
  const headers = new LRUCache<string, JsonObject>({ max: keptHeaders });
  const named = new LRUCache<string, IssuerRules>({ max: keptIssuers });
  const read = new WeakMap<TrustedIssuer, IssuerRules>();
  const lists = new WeakMap<IssuerList, KnownList>();

  const open = (source: KeySource): ManagedKeySet => {
    const { issuer, jwksUri, insecure = false } = source;
    // Another list may name the same issuer with another place for its keys.
    const place = JSON.stringify([issuer, jwksUri, insecure]);
    const known = opened.get(place);
    if (known !== undefined) return known;
    const keys = openKeys(source);
    ownSets.add(keys);
    opened.set(place, keys);
    return keys;
  };

  /** Whether the keys are still open: those that were not opened here always are. Notes that they are asked for. */
  const isOpen = ({ issuer, keys }: IssuerRules): boolean => !ownSets.has(keys) || opened.get(issuer) === keys;

  const readOnce = (entry: string | TrustedIssuer): IssuerRules => {
    const known = typeof entry === 'string' ? named.get(entry) : read.get(entry);
    if (known !== undefined && isOpen(known)) return known;
    const rules = readIssuer(entry, defaults, open);
    if (typeof entry === 'string') named.set(entry, rules);
    else read.set(entry, rules);
    return rules;
  };

  const readList = (entries: IssuerList): AccessTokenRules => {
    if (!Array.isArray(entries)) throw new TypeError('issuers: write a list, or a function that gives one');
    const byName = new Map<string, IssuerRules>();
    // Where nobody is trusted the issuer is what is wrong, not the algorithm.
    const algorithms = new Set(entries.length === 0 ? readAlgorithms(defaults.algorithms) : []);
    for (const entry of entries) {
      const rules = readOnce(entry);
      if (byName.has(rules.issuer)) throw new TypeError('issuers: name each issuer once');
      byName.set(rules.issuer, rules);
      for (const alg of rules.algorithms) algorithms.add(alg);
    }
    return { issuers: byName, algorithms, certificates, headers };
  };

  const isCurrent = (known: KnownList): boolean => {
    for (const rules of known.rules.issuers.values()) if (!isOpen(rules)) return false;
    return true;
  };

  /** A list that is the same as before, entry for entry: it may have been changed in place. */
  const readKnownList = (entries: IssuerList): AccessTokenRules => {
    const known = lists.get(entries);
    if (known !== undefined && isSame(known.entries, entries) && isCurrent(known)) return known.rules;
    const rules = readList(entries);
    lists.set(entries, { entries: [...entries], rules });
    return rules;
  };

  const close = (): void => {
    opened.clear();
  };

  if (typeof issuers === 'function') {
    const find: Issuers['find'] = (request, url) => {
      return after(issuers(withoutCredentials(request, url)), readKnownList, undefined);
    };
    const realm = [...readRecipients(defaults).audiences].join(' ');
    return { find, realm, ready: async () => undefined, close };
  }
  const rules = readList(issuers);
  const all = [...rules.issuers.values()];
  // With no issuer at all every token is refused; what is missing is said all the same.
  const isSaid = defaults.audience !== undefined || defaults.clientIds !== undefined;
  const own = all.length === 0 || isSaid ? [...readRecipients(defaults).audiences] : [];
  const audiences = new Set([...own, ...all.flatMap((each) => [...each.audiences])]);
  return {
    find: () => rules,
    realm: [...(audiences.size > 0 ? audiences : rules.issuers.keys())].join(' '),
    ready: async () => void (await Promise.all(all.map(({ keys }) => awaitKeys(keys)))),
    close,
  };
}

function isSame(before: IssuerList, now: IssuerList): boolean {
  return before.length === now.length && before.every((entry, index) => entry === now[index]);
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
