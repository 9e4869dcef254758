import { AccessError } from '../failures.ts';
import type { Claims } from './claims.ts';
import { isJsonObject } from './json.ts';

/** base64url of 32 bytes. */
const thumbprintLength = 43;

/**
 * The thumbprint of the key a token is bound to (`cnf.jkt`, RFC 9449 §6.1); `undefined` for a free token. A binding
 * that cannot be confirmed here is refused rather than ignored (RFC 7800 §3.1).
 */
export function readConfirmation({ cnf }: Claims): string | undefined {
  if (cnf === undefined) return undefined;
  if (!isJsonObject(cnf)) throw new AccessError('malformed_cnf');
  const { jkt, ...others } = cnf;
  if (Object.keys(others).length > 0) throw new AccessError('unsupported_cnf');
  if (jkt === undefined) return undefined;
  if (typeof jkt !== 'string' || jkt.length !== thumbprintLength) throw new AccessError('malformed_cnf');
  return jkt;
}
