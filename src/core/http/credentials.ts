import { Refused } from '../refused.ts';
import type { ResourceRequest } from './request.ts';

/** Accepted schemes: only Bearer, both, or only DPoP. */
export type DpopMode = 'off' | 'allowed' | 'required';

/** Scheme of an access token (RFC 6750, RFC 9449). */
export type Scheme = 'Bearer' | 'DPoP';

export interface Credentials {
  readonly scheme: Scheme;
  /** The access token, at most 16 KiB, otherwise not looked into. */
  readonly token: string;
  /** The DPoP header under the DPoP scheme, not looked into. */
  readonly proof: string | undefined;
}

const maxTokenLength = 16_384;
const spellings = { Bearer: 'Bearer', DPoP: 'DPoP', bearer: 'Bearer', dpop: 'DPoP' } as const;
const schemes: ReadonlyMap<string, Scheme> = new Map(Object.entries(spellings));

/** Reads the credentials (RFC 6750 §2.1, RFC 9449 §7.1), never of the query or the body (RFC 6750 §5.3). */
export function readCredentials(headers: ResourceRequest['headers'], mode: DpopMode): Credentials | Refused {
  const value = headers.get('authorization');
  if (value === null || value === '') return new Refused('missing_credentials');
  if (value.includes(',') && isRepeated(value)) return new Refused('multiple_authorization_headers');
  const scheme = readScheme(value);
  if (scheme === undefined) return new Refused('unsupported_scheme');
  const proof = headers.get('dpop') ?? undefined;
  if (scheme === 'Bearer') {
    // RFC 9449 §7.2: a proof with a Bearer token is a downgrade, whichever schemes are on.
    if (proof !== undefined) return new Refused('bearer_with_dpop_proof');
    if (mode === 'required') return new Refused('bearer_not_accepted');
  } else if (mode === 'off') {
    return new Refused('dpop_not_accepted');
  }
  const token = readToken(value, scheme.length);
  if (token === '') return new Refused('missing_credentials');
  if (scheme === 'DPoP' && proof === undefined) return new Refused('missing_dpop_proof');
  if (token.length > maxTokenLength) return new Refused('token_too_large');
  return { scheme, token, proof };
}

/** The authorization schemes of a mode, in the order of the challenges. */
export function acceptedSchemes(mode: DpopMode): readonly Scheme[] {
  if (mode === 'off') return ['Bearer'];
  return mode === 'required' ? ['DPoP'] : ['Bearer', 'DPoP'];
}

/** The scheme that an Authorization header begins with, compared case-insensitively (RFC 9110 §11.1). */
export function readScheme(value: string): Scheme | undefined {
  const space = value.indexOf(' ');
  const name = space < 0 ? value : value.slice(0, space);
  return schemes.get(name) ?? schemes.get(name.toLowerCase());
}

/** Reads the token after the scheme and 1*SP (RFC 9110 §11.4). */
function readToken(value: string, schemeEnd: number): string {
  let from = schemeEnd;
  while (value.charCodeAt(from) === 0x20) from++;
  return value.slice(from);
}

/**
 * Reports whether a value with commas is several headers joined into one: a later part is only a scheme, or a scheme and a
 * space, instead of a parameter (`name=value`). Commas inside a closed quoted-string separate nothing (RFC 9110 §5.6.4).
 */
function isRepeated(value: string): boolean {
  return value
    .replace(/"(?:[^"\\]|\\.)*("?)/gs, (quoted, end) => (end === '"' ? '' : quoted))
    .split(',')
    .some((part, index) =>
      index === 0 ? part.trim() === '' : /^(?:[\w!#$%&'*+.^`|~-]+(?: +[^ =].*)?)?$/s.test(part.trim()),
    );
}
