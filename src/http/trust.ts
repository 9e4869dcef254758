import { BlockList, isIP } from 'node:net';
import { LRUCache } from 'lru-cache';

/** Whose X-Forwarded-* headers are believed: nobody's, everybody's, or those of these addresses and CIDR ranges. */
export type Trust = 'none' | 'all' | readonly string[];

/** Whether a peer is trusted; `undefined` stands for a peer that the runtime does not name. */
export type IsTrusted = (address: string | undefined) => boolean;

// A check against the list takes microseconds, and a deployment has few proxies.
const maxRememberedPeers = 256;
const mappedPrefix = 96;
const mapped = new BlockList();
mapped.addSubnet('::ffff:0:0', mappedPrefix, 'ipv6');

/**
 * Parses the trusted peers once. A list trusts no peer that it cannot see; an IPv4 entry covers the IPv4-mapped
 * spelling of a peer (`::ffff:10.0.0.1`). Throws `TypeError` for an entry that is no address and no CIDR range.
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
