import { isIPv6 } from 'node:net';

/** Groups of an IPv6 address that name the network of one client, a /64. */
const networkGroups = 4;
const allGroups = 8;
/** The first six groups of addresses that contain an IPv4 address: mapped (RFC 4291 §2.5.5.2), and translated (RFC 6052 §2.1). */
const prefixesOfIpv4: ReadonlySet<string> = new Set(['0:0:0:0:0:ffff', '64:ff9b:0:0:0:0']);

/**
 * Returns the name under which all that an address does is counted: an IPv4 address, even inside an IPv6 address, or the /64
 * of an IPv6 address, which one client is usually assigned. Equal for all spellings. Empty without an address.
 */
export function namePeer(address: string | undefined): string {
  if (address === undefined) return '';
  // Most addresses are IPv4, and the expression of `isIPv6` is long.
  if (!address.includes(':') || !isIPv6(address)) return address;
  const [head = '', tail = ''] = address.replace(/%.*$/s, '').split('::');
  const groups = readGroups(head);
  const last = readGroups(tail);
  while (groups.length + last.length < allGroups) groups.push(0);
  groups.push(...last);
  const [high = 0, low = 0] = groups.slice(6);
  const written = groups.map((group) => group.toString(16));
  const isIpv4 = prefixesOfIpv4.has(written.slice(0, 6).join(':'));
  if (isIpv4) return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
  return `${written.slice(0, networkGroups).join(':')}::/64`;
}

function readGroups(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    const [a, b, c, d] = group.split('.').map(Number);
    if (a === undefined || b === undefined || c === undefined || d === undefined) return [Number.parseInt(group, 16)];
    return [a * 256 + b, c * 256 + d];
  });
}
