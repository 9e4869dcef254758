import { isIP, isIPv6 } from 'node:net';
import { type IsTrusted, parseTrust, type Trust } from './external-url.ts';
import type { Connection, ResourceRequest } from './request.ts';

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
