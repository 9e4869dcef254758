import { isIP } from 'node:net';
import type { Connection, ResourceRequest } from './request.ts';
import { parseTrust, type Trust } from './trust.ts';

/** Who sent a request, as far as it can be believed; `undefined` if the transport does not tell. */
export type ReadClientAddress = (request: ResourceRequest, connection: Connection | undefined) => string | undefined;

/** Addresses that are looked at in one X-Forwarded-For, from the end. */
const maxHops = 32;

/**
 * Creates the reader of the client's address. Each proxy adds the address that it saw, so the list is read from its end,
 * for as long as the peer that sent it is trusted. What is no address ends the walk.
 */
export function createReadClientAddress(trust: Trust): ReadClientAddress {
  if (trust === 'none') return (_, connection) => connection?.remoteAddress;
  const isTrusted = parseTrust(trust);
  return ({ headers }, connection) => {
    let address = connection?.remoteAddress;
    if (!isTrusted(address)) return address;
    const hops =
      headers
        .get('x-forwarded-for')
        ?.split(',', maxHops * 4)
        .slice(-maxHops) ?? [];
    for (const hop of hops.reverse()) {
      const sender = hop.trim();
      if (isIP(sender) === 0) return address;
      address = sender;
      if (!isTrusted(address)) return address;
    }
    return address;
  };
}
