import { isIP } from 'node:net';
import { type IsTrusted, parseHost, parseTrust, type Trust } from './external-url.ts';
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
    const sender = readAddress(hops.slice(comma + 1, end).trim());
    if (sender === undefined) return address;
    address = sender;
    if (!isTrusted(address)) return address;
    end = comma;
  }
  return address;
}

/** Reads an address with or without a port. IPv6 with a port is in brackets. */
function readAddress(text: string): string | undefined {
  if (isIP(text) !== 0) return text;
  const address = parseHost(text)?.name.replace(/^\[|\]$/g, '') ?? '';
  return isIP(address) === 0 ? undefined : address;
}
