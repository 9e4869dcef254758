import { BlockList, isIP } from 'node:net';

const mappedPrefix = 96;
const mapped = new BlockList();
mapped.addSubnet('::ffff:0:0', mappedPrefix, 'ipv6');
// Without a zone, which would be dropped silently: the entry would then cover more than it says.
const entryGrammar = /^([^/%]+)(?:\/(0|[1-9]\d{0,2}))?$/;

/** Parses addresses and CIDR ranges; IPv4 entries cover IPv4-mapped addresses. Throws `TypeError` for others. */
export function parseRanges(entries: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const entry of entries) addEntry(list, entry);
  return (address) => {
    const family = familyOf(address);
    return family !== undefined && list.check(address, family);
  };
}

function familyOf(address: string): 'ipv4' | 'ipv6' | undefined {
  const version = isIP(address);
  if (version === 0) return undefined;
  return version === 4 ? 'ipv4' : 'ipv6';
}

function addEntry(list: BlockList, entry: string): void {
  const [, address = '', digits] = entryGrammar.exec(entry) ?? [];
  const family = familyOf(address);
  const bits = family === 'ipv4' ? 32 : 128;
  const prefix = digits === undefined ? bits : Number(digits);
  // `::ffff:10.0.0.0/8` is meant as 10.0.0.0/8 and would cover every IPv4 peer.
  const isAmbiguous = family === 'ipv6' && prefix < mappedPrefix && mapped.check(address, family);
  if (family === undefined || prefix > bits || isAmbiguous) {
    throw new TypeError(
      'A trusted proxy is not an address or a CIDR range. Write each as in 192.0.2.1, 10.0.0.0/8, 2001:db8::1 or fd00::/8, without a zone, and IPv4 ranges as IPv4.',
    );
  }
  list.addSubnet(address, prefix, family);
}
