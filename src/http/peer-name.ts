import { isIPv6 } from 'node:net';

/** Groups of an IPv6 address that name the network of one client, a /64. */
const networkGroups = 4;
const allGroups = 8;

/**
 * Returns the name under which the requests of an address are counted: an IPv4 address, also in its IPv4-mapped form, or
 * the /64 of an IPv6 address, which is what one client is usually assigned. Empty without an address.
 */
export function namePeer(address: string | undefined): string {
  if (address === undefined) return '';
  // Most addresses are IPv4, and the expression of `isIPv6` is long.
  if (!address.includes(':') || !isIPv6(address)) return address;
  if (address.includes('.')) return address.slice(address.lastIndexOf(':') + 1);
  const [head = '', tail = ''] = address.split('::');
  const groups = splitGroups(head);
  const last = splitGroups(tail);
  while (groups.length + last.length < allGroups) groups.push('0');
  return `${[...groups, ...last].slice(0, networkGroups).join(':')}::/64`;
}

function splitGroups(text: string): string[] {
  return text === '' ? [] : text.split(':');
}
