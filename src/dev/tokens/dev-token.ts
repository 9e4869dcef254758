import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { clientIds } from '../provider/defaults.ts';
import { jsonResponse, type ProviderResponse, readBody } from '../provider/response.ts';
import type { Mint, Minting } from './minting.ts';
import { parseTokenOptions } from './token-options.ts';

export const devTokenPath = '/dev/token';

export const introspectionPath = '/dev/introspection';

/** Maximum size of a request body, in bytes. */
const maxBody = 4096;

/** Authorization header of the service client (RFC 6749 §2.3.1). */
export function clientAuthorization(clientSecret: string): string {
  return `Basic ${Buffer.from(`${clientIds.service}:${clientSecret}`).toString('base64')}`;
}

/** Handles token introspection, only for the service client (RFC 7662 §2.1). */
export function createIntrospectionEndpoint(
  introspect: Minting['introspect'],
  clientSecret: string,
): (request: IncomingMessage) => Promise<ProviderResponse> {
  const expected = digest(clientAuthorization(clientSecret));
  return async (request) => {
    if (request.method !== 'POST') return refuse(405, 'invalid_request', { allow: 'POST' });
    if (!timingSafeEqual(digest(request.headers.authorization ?? ''), expected)) {
      return refuse(401, 'invalid_client', { 'www-authenticate': 'Basic realm="local identity provider"' });
    }
    const body = await readBody(request, maxBody);
    if (body === undefined) return refuse(413, 'invalid_request');
    const token = new URLSearchParams(body).get('token');
    return token === null ? refuse(400, 'invalid_request') : jsonResponse(200, introspect(token));
  };
}

/**
 * Issues tokens with any deviation, only for the service client. The body must be JSON, so that a foreign page cannot
 * send it without a preflight.
 */
export function createDevTokenEndpoint(
  mint: Mint,
  clientSecret: string,
): (request: IncomingMessage) => Promise<ProviderResponse> {
  const expected = digest(clientAuthorization(clientSecret));
  return async (request) => {
    if (request.method !== 'POST') return refuse(405, 'invalid_request', { allow: 'POST' });
    if (!/^application\/json\s*(?:;|$)/i.test(request.headers['content-type'] ?? '')) {
      return refuse(415, 'invalid_request');
    }
    if (!timingSafeEqual(digest(request.headers.authorization ?? ''), expected)) {
      return refuse(401, 'invalid_client', { 'www-authenticate': 'Basic realm="local identity provider"' });
    }
    const body = await readBody(request, maxBody);
    if (body === undefined) return refuse(413, 'invalid_request');
    const options = parseTokenOptions(body);
    if (options === undefined) return refuse(400, 'invalid_request');
    return jsonResponse(200, { access_token: await mint(options) });
  };
}

function refuse(status: number, error: string, headers: Readonly<Record<string, string>> = {}): ProviderResponse {
  return jsonResponse(status, { error }, headers);
}

// Equal length for timingSafeEqual.
function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
