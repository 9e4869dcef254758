import { promisify } from 'node:util';
import { inflate } from 'node:zlib';
import { decodeBase64url, isJsonObject, isTime, type JsonObject } from '../jose/json.ts';
import { createOutbound, type OutboundOptions } from '../outbound/outbound.ts';
import { Refused } from '../refused.ts';

/** Token status lists (draft-ietf-oauth-status-list): experimental. */
export interface StatusLists<I> {
  /** Refuses a token whose list says so. `issuer` has signed the token, and must have signed the list. */
  check(claims: JsonObject, issuer: I): Refused | undefined | Promise<Refused | undefined>;
  close(): void;
}

export interface StatusListsOptions<I> {
  /** https URLs that end in a slash; a list is fetched only below one of them. */
  readonly prefixes: readonly string[];
  /** Fetches instead of the built-in client. */
  readonly outbound: OutboundOptions;
  readonly verifyList: (token: string, issuer: I) => JsonObject | Refused;
  /** Returns seconds since the epoch. */
  readonly now: () => number;
}

interface ListIssuer {
  readonly keys: { refetch(): Promise<void> | undefined };
}

interface List {
  content: Content | undefined;
  fetching: Promise<void> | undefined;
  /** Seconds: no fetch before, after one has failed. */
  retryAt: number;
  used: boolean;
  timer: NodeJS.Timeout | undefined;
}

interface Content {
  readonly bytes: Uint8Array;
  readonly bits: number;
  readonly refreshAt: number;
  readonly expiresAt: number;
}

const fetchLimits = { timeoutSeconds: 3, maxBytes: 16 * 1024 * 1024 } as const;
const maxLists = 64;
const maxListBytes = 8 * 1024 * 1024;
// Seconds.
const minTtl = 1;
const maxTtl = 86_400;
const defaultTtl = 300;
const retrySeconds = 5;
/** Part of the time to live after which a list in use is refreshed. */
const refreshPart = 0.75;
const widths: ReadonlySet<unknown> = new Set([1, 2, 4, 8]);
const unpack = promisify(inflate);

/** Creates status lists. {@link isListPrefix} is true for each prefix. */
export function createStatusLists<I extends ListIssuer>(options: StatusListsOptions<I>): StatusLists<I> {
  const { prefixes, verifyList, now } = options;
  const outbound = createOutbound(options.outbound);
  /** Lists by address and issuer: a list counts only for the issuer that has signed it. No address has a space. */
  const lists = new Map<string, List>();

  const open = (name: string): List | undefined => {
    const known = lists.get(name);
    if (known !== undefined || lists.size >= maxLists) return known;
    const list: List = { content: undefined, fetching: undefined, retryAt: 0, used: true, timer: undefined };
    lists.set(name, list);
    return list;
  };

  const refresh = (list: List, uri: string, issuer: I): Promise<void> => {
    list.fetching ??= load(uri, issuer)
      .then((content) => {
        list.content = content;
        const wait = (content.refreshAt - now()) * 1000;
        clearTimeout(list.timer);
        list.timer = setTimeout(() => {
          if (list.used) void refresh(list, uri, issuer);
          list.used = false;
        }, wait).unref();
      })
      .catch(() => {
        list.retryAt = now() + retrySeconds;
      })
      .finally(() => {
        list.fetching = undefined;
      });
    return list.fetching;
  };

  const load = async (uri: string, issuer: I): Promise<Content> => {
    const token = await outbound.fetchText(uri, 'application/statuslist+jwt', fetchLimits);
    let claims = verifyList(token, issuer);
    if (claims instanceof Refused && claims.reason === 'unknown_kid') {
      await issuer.keys.refetch();
      claims = verifyList(token, issuer);
    }
    if (claims instanceof Refused) throw claims.toError();
    return readList(claims, uri, now());
  };

  const decide = (list: List, idx: number): Refused | undefined => {
    const { content } = list;
    if (content === undefined || content.expiresAt <= now()) return new Refused('revocation_unknown');
    return statusAt(content, idx) === 0
      ? undefined
      : new Refused('revoked_token', { context: { revocation: 'status_list' } });
  };

  return {
    check({ iss, status }, issuer) {
      if (!isJsonObject(status) || !Object.hasOwn(status, 'status_list')) return undefined;
      const reference = readReference(status['status_list']);
      if (reference === undefined) return new Refused('malformed_status');
      const { idx, uri } = reference;
      if (!isNormalised(uri) || !prefixes.some((prefix) => uri.startsWith(prefix))) {
        return new Refused('status_list_not_allowed');
      }
      const list = open(`${uri} ${String(iss)}`);
      if (list === undefined) return new Refused('revocation_unknown');
      list.used = true;
      const seconds = now();
      const isDue = list.content === undefined || seconds >= list.content.refreshAt;
      if (!isDue || (list.fetching === undefined && seconds < list.retryAt)) return decide(list, idx);
      const refreshed = refresh(list, uri, issuer);
      // A list that has not expired is used while the next is fetched.
      if (list.content !== undefined && seconds < list.content.expiresAt) return decide(list, idx);
      return refreshed.then(() => decide(list, idx));
    },
    close() {
      for (const { timer } of lists.values()) clearTimeout(timer);
      outbound.close();
    },
  };
}

export function isListPrefix(value: unknown): boolean {
  return typeof value === 'string' && value.startsWith('https://') && value.endsWith('/') && isNormalised(value);
}

function isNormalised(uri: string): boolean {
  return URL.canParse(uri) && new URL(uri).href === uri;
}

function readReference(value: unknown): { readonly idx: number; readonly uri: string } | undefined {
  if (!isJsonObject(value)) return undefined;
  const { idx, uri } = value;
  const isIndex = typeof idx === 'number' && Number.isSafeInteger(idx) && idx >= 0;
  return isIndex && typeof uri === 'string' && uri !== '' ? { idx, uri } : undefined;
}

async function readList(claims: JsonObject, uri: string, now: number): Promise<Content> {
  const { sub, iat, exp, ttl, status_list: list } = claims;
  const isCurrent = sub === uri && isTime(iat) && (exp === undefined || (isTime(exp) && exp > now));
  if (!isCurrent || !isJsonObject(list)) throw new TypeError('The status list is not valid');
  const { bits, lst } = list;
  const packed = typeof lst === 'string' ? decodeBase64url(lst) : undefined;
  if (!widths.has(bits) || packed === undefined) throw new TypeError('The status list is not valid');
  // The limit applies while unpacking: a few bytes can stand for gigabytes.
  const bytes = await unpack(packed, { maxOutputLength: maxListBytes });
  const isTtl = typeof ttl === 'number' && ttl > 0;
  const lifetime = Math.min(maxTtl, Math.max(minTtl, isTtl ? ttl : exp === undefined ? defaultTtl : exp - now));
  return {
    bytes,
    bits: Number(bits),
    refreshAt: now + lifetime * refreshPart,
    expiresAt: exp ?? now + lifetime,
  };
}

/** Status at an index, lowest bits first; every index outside the list has one that refuses. */
function statusAt({ bytes, bits }: Content, idx: number): number {
  const at = idx * bits;
  const byte = bytes[Math.floor(at / 8)];
  return byte === undefined ? 1 : (byte >> (at % 8)) & (2 ** bits - 1);
}
