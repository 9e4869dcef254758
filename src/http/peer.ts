import { BlockList, isIP } from 'node:net';
import { LRUCache } from 'lru-cache';
import type { Connection, ResourceRequest } from './request.ts';

/** Peers whose X-Forwarded-* headers are trusted: none, all, or these addresses and CIDR ranges. */
export type Trust = 'none' | 'all' | readonly string[];

/** Reports whether a peer is trusted; `undefined` is a peer that the runtime does not name. */
export type IsTrusted = (address: string | undefined) => boolean;

// A check against the list takes microseconds, and a deployment has few proxies.
const maxRememberedPeers = 256;
const mappedPrefix = 96;
const mapped = new BlockList();
mapped.addSubnet('::ffff:0:0', mappedPrefix, 'ipv6');

/**
 * Parses the trusted peers once. A list trusts no peer that it cannot see; an IPv4 entry covers the IPv4-mapped spelling of a
 * peer (`::ffff:10.0.0.1`). Throws `TypeError` for an entry that is neither an address nor a CIDR range.
 */
export function parseTrust(trust: Trust): IsTrusted {
  if (trust === 'none') return () => false;
  if (trust === 'all') return () => true;
  const list = new BlockList();
  for (const entry of trust) addEntry(list, entry);
  const answers = new LRUCache<string, boolean>({
    max: maxRememberedPeers,
    memoMethod: (address) => {
      const family = familyOf(address);
      return family !== undefined && list.check(address, family);
    },
  });
  // Most calls come from the peer that the one before came from.
  let last: string | undefined;
  let isLastTrusted = false;
  return (address) => {
    if (address === undefined) return false;
    if (address !== last) {
      isLastTrusted = answers.memo(address);
      last = address;
    }
    return isLastTrusted;
  };
}

function familyOf(address: string): 'ipv4' | 'ipv6' | undefined {
  const version = isIP(address);
  if (version === 0) return undefined;
  return version === 4 ? 'ipv4' : 'ipv6';
}

function addEntry(list: BlockList, entry: string): void {
  const slash = entry.indexOf('/');
  const address = slash < 0 ? entry : entry.slice(0, slash);
  const family = familyOf(address);
  // A zone would be dropped silently, and the entry would then cover more than it says.
  if (family === undefined || address.includes('%')) throw malformed();
  if (slash < 0) {
    list.addAddress(address, family);
    return;
  }
  const prefix = parsePrefix(entry.slice(slash + 1), family === 'ipv4' ? 32 : 128);
  // `::ffff:10.0.0.0/8` is meant as 10.0.0.0/8 and would cover every IPv4 peer.
  if (family === 'ipv6' && prefix < mappedPrefix && mapped.check(address, family)) throw malformed();
  list.addSubnet(address, prefix, family);
}

function parsePrefix(text: string, bits: number): number {
  const prefix = /^(?:0|[1-9]\d{0,2})$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY;
  if (prefix > bits) throw malformed();
  return prefix;
}

function malformed(): TypeError {
  return new TypeError(
    'A trusted proxy is not an address or a CIDR range. Write each as in 192.0.2.1, 10.0.0.0/8, 2001:db8::1 or fd00::/8, without a zone, and IPv4 ranges as IPv4.',
  );
}

/** Reads the sender of a request, as far as trusted; `undefined` if the transport does not name it. */
export type ReadClientAddress = (request: ResourceRequest, connection: Connection | undefined) => string | undefined;

/** Maximum number of addresses read from one X-Forwarded-For, from the end. */
const maxHops = 32;

/**
 * Creates the reader of the client's address. Each proxy adds the address that it saw, so the list is read from its end, for
 * as long as the peer that sent it is trusted. Anything else than an address ends the walk.
 */
export function createReadClientAddress(trust: Trust): ReadClientAddress {
  if (trust === 'none') return (_, connection) => connection?.remoteAddress;
  const isTrusted = parseTrust(trust);
  return ({ headers }, connection) => {
    const address = connection?.remoteAddress;
    if (!isTrusted(address)) return address;
    const hops = headers.get('x-forwarded-for');
    return hops === null ? address : walkBack(hops, address, isTrusted);
  };
}

/** Returns the last untrusted hop; the list may be long, so it is not split. */
function walkBack(hops: string, peer: string | undefined, isTrusted: IsTrusted): string | undefined {
  let address = peer;
  let end = hops.length;
  for (let count = 0; count < maxHops && end >= 0; count++) {
    const comma = end === 0 ? -1 : hops.lastIndexOf(',', end - 1);
    const sender = hops.slice(comma + 1, end).trim();
    if (isIP(sender) === 0) return address;
    address = sender;
    if (!isTrusted(address)) return address;
    end = comma;
  }
  return address;
}
