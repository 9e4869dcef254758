// Compact JWS (RFC 7515) under SHA-256: RS256 by an RSA key, ES256 by one of P-256.
import { sign } from 'node:crypto';

/** A part of a compact JWS: JSON in base64url. */
export const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Signs claims; `header` names the algorithm that fits the key. */
export function signJws(header, claims, key) {
  const input = `${encode(header)}.${encode(claims)}`;
  return `${input}.${sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
}
