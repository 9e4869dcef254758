import { LRUCache } from 'lru-cache';
import { readAlgorithms, tokenAlgs } from '../../jose/jws.ts';
import { readWellKnown } from '../../keys/discovery.ts';
import { type KeySet, type KeySetState, type ResumableKeySet, resumeKeySet } from '../../keys/key-set.ts';
import { checkJwksUri, type KeySetEvent } from '../../keys/key-set-options.ts';
import { createKeySetPool } from '../../keys/key-set-pool.ts';
import { omitUndefined } from '../../option-members.ts';
import { ProviderError } from '../../outbound/provider-error.ts';
import { type AccessTokenRules, type IssuerRules, readUnverifiedIssuer } from '../../token/access-token.ts';
import type { TokenCache } from '../../token/token-cache.ts';
import type { AnyServerOptions, Emit } from '../options.ts';
import { createIssuerSearch, type IssuerFinder, type IssuerSearch } from './issuer-finder.ts';
import { readRecipients, readTokenRules } from './token-rules.ts';
import {
  type IssuerList,
  isFixed,
  type KeySource,
  readIssuer,
  readIssuerName,
  type TrustedIssuer,
} from './trusted-issuer.ts';

export interface Issuers {
  /** The trusted issuers, if they do not depend on the request or the token. */
  readonly fixed?: AccessTokenRules;
  readonly find: IssuerSearch;
  /** Called after a token of the issuer was verified, unless the issuers are fixed. */
  confirm?(issuer: IssuerRules): void;
  /** Realm of challenges: every accepted audience, else every issuer, as far as known before a request. */
  readonly realm: string;
  /** Resolves when the keys of all issuers are available; rejects with `ProviderError`. */
  ready(): Promise<void>;
  /** Closes the key sets that were opened here. */
  close(): void;
}

/** Headers of access tokens that are kept: an issuer writes one for each of its keys. */
const keptHeaders = 1000;
/** Issuers whose rules are kept, for each key set that may be open: rules are small. */
const keptPerOpen = 10;

interface IssuersParts extends Required<Pick<AccessTokenRules, 'certificates' | 'headers'>> {
  readonly emit: Emit | undefined;
  readonly cache: TokenCache | undefined;
}

/** Reads the issuers. Throws `TypeError` for an invalid list. */
export function openIssuers(options: AnyServerOptions, given: Omit<IssuersParts, 'headers'>): Issuers {
  const { issuer, issuers = [], keys, jwksUri, insecure } = options;
  const parts: IssuersParts = { ...given, headers: new LRUCache({ maxSize: keptHeaders, sizeCalculation: () => 1 }) };
  if (issuer !== undefined) {
    const name = readIssuerName(issuer, insecure || jwksUri !== undefined);
    return openFixedIssuers(options, [omitUndefined({ issuer: name, keys, jwksUri, insecure })], parts);
  }
  return isFixed(issuers) ? openFixedIssuers(options, issuers, parts) : openFoundIssuers(options, issuers, parts);
}

function openKeys(
  { fetch, ca, keysStale: staleSeconds, keyCache }: AnyServerOptions,
  emit: Emit | undefined,
): (source: KeySource, state?: KeySetState) => ResumableKeySet {
  return ({ issuer, jwksUri, insecure }, state) => {
    const onEvent =
      emit &&
      ((event: KeySetEvent) =>
        emit(event.type === 'insecure' ? { type: 'insecure', issuer } : { type: 'keys', issuer, event }));
    const set = { issuer, jwksUri, insecure, fetch, ca, staleSeconds, keyCache, onEvent };
    return resumeKeySet(omitUndefined(set), state);
  };
}

function openFixedIssuers(
  options: AnyServerOptions,
  entries: IssuerList,
  { certificates, emit, headers }: IssuersParts,
): Issuers {
  const opened: ResumableKeySet[] = [];
  const open = openKeys(options, emit);
  const issuers = new Map<string, IssuerRules>();
  for (const entry of entries) {
    const rules = readIssuer(entry, { options }, (source) => {
      const keys = open(source);
      opened.push(keys);
      return keys;
    });
    if (issuers.has(rules.issuer)) throw new TypeError('issuers: name each issuer once');
    issuers.set(rules.issuer, rules);
  }
  const all = [...issuers.values()];
  // Without a trusted issuer the issuer is wrong, not the algorithm.
  const allowed = all.length === 0 ? [readAlgorithms(options.algorithms ?? ['RS256'], tokenAlgs)] : [];
  const algorithms = new Set([...allowed, ...all.map((each) => each.algorithms)].flatMap((each) => [...each]));
  const rules: AccessTokenRules = { issuers, algorithms, certificates, headers };
  // With no issuer at all every token is refused; missing options are still reported.
  const own = all.length === 0 || hasRecipients(options) ? [...readRecipients(options).audiences] : [];
  const audiences = new Set([...own, ...all.flatMap((each) => [...each.audiences])]);
  return {
    fixed: rules,
    find: () => rules,
    realm: [...(audiences.size > 0 ? audiences : issuers.keys())].join(' '),
    ready: async () => void (await Promise.all(all.map(({ keys }) => awaitKeys(keys)))),
    close() {
      for (const keys of opened) keys.close();
    },
  };
}

function openFoundIssuers(
  options: AnyServerOptions,
  finder: IssuerFinder,
  { certificates, emit, cache, headers }: IssuersParts,
): Issuers {
  const maxOpen = options.maxOpenIssuers ?? 1000;
  const pool = createKeySetPool({ maxOpen, open: openKeys(options, emit) });
  // Issuers that are found may each say for whom their tokens are.
  const rules = hasRecipients(options) ? readTokenRules(options) : undefined;
  const defaults = omitUndefined({ options, rules });
  const maxFound = maxOpen * keptPerOpen;
  const readEntry = createEntryReader(
    (entry) => readIssuer(entry, defaults, (source) => pool.keysOf(readPlace(source), source)),
    maxFound,
  );
  const { introspection } = options;
  const nameOf = (token: string): string | undefined =>
    cache?.issuerOf(token) ??
    readUnverifiedIssuer(token, headers) ??
    (introspection?.handles(token) ? introspection.issuer : undefined);
  return {
    find: createIssuerSearch({ readEntry, certificates, headers, finder, nameOf, maxFound }),
    confirm: ({ keys }) => pool.confirm(keys),
    realm: [...(rules?.audiences ?? [])].join(' '),
    ready: async () => undefined,
    close: () => pool.close(),
  };
}

function hasRecipients({ audience, clientIds }: AnyServerOptions): boolean {
  return audience !== undefined || clientIds !== undefined;
}

/** Reads each object once, and each name and place once: the token cache compares rules as objects. */
function createEntryReader(read: ReadEntry, max: number): ReadEntry {
  const byText = new LRUCache<string, IssuerRules>({ max });
  const byObject = new WeakMap<TrustedIssuer, IssuerRules>();
  return (entry) => {
    const text = writeEntry(entry);
    const known = text === undefined ? byObject.get(entry as TrustedIssuer) : byText.get(text); // a name has a text
    if (known !== undefined) return known;
    const rules = read(entry);
    if (text !== undefined) byText.set(text, rules);
    else byObject.set(entry as TrustedIssuer, rules);
    return rules;
  };
}

/** An entry as text; `undefined` for one with keys or rules, which may change, and for what is not an entry. */
function writeEntry(entry: string | TrustedIssuer): string | undefined {
  if (typeof entry === 'string') return JSON.stringify(entry);
  if (typeof entry !== 'object' || entry === null) return undefined;
  const { issuer, jwksUri, insecure, keys, rules } = entry;
  const isPlace = keys === undefined && rules === undefined && Object.keys(entry).every((name) => placeNames.has(name));
  return isPlace ? JSON.stringify([issuer, jwksUri, insecure]) : undefined;
}

const placeNames: ReadonlySet<string> = new Set(['issuer', 'jwksUri', 'insecure'] satisfies (keyof TrustedIssuer)[]);

/** Names the place of keys: an issuer may publish others elsewhere. Throws `TypeError` for a place that cannot work. */
function readPlace({ issuer, jwksUri, insecure = false }: KeySource): string {
  if (jwksUri === undefined) readWellKnown(issuer, insecure);
  else checkJwksUri(jwksUri, insecure);
  // The usual path needs no memory, and is not a JSON array.
  return jwksUri === undefined && !insecure ? issuer : JSON.stringify([issuer, jwksUri, insecure]);
}

type ReadEntry = (entry: string | TrustedIssuer) => IssuerRules;

async function awaitKeys(keys: KeySet): Promise<void> {
  if ('ready' in keys && typeof keys.ready === 'function') return keys.ready();
  if (keys.usable()) return;
  await keys.refetch();
  if (!keys.usable()) throw new ProviderError('no_usable_keys');
}
