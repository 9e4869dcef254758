import type { IncomingMessage } from 'node:http';
import { isSameSecret } from '../../core/http/same-secret.ts';
import { clientIds } from '../provider/defaults.ts';
import { jsonResponse, type ProviderResponse, readBody } from '../provider/response.ts';
import type { Mint } from './minting.ts';
import { parseTokenOptions } from './token-options.ts';

export const devTokenPath = '/dev/token';

/** Maximum size of a request body, in bytes. */
const maxBody = 4096;

/** Authorization header of the service client (RFC 6749 §2.3.1). */
export function clientAuthorization(clientSecret: string): string {
  return `Basic ${Buffer.from(`${clientIds.service}:${clientSecret}`).toString('base64')}`;
}

/** Creates the endpoint for tokens with any deviation. Only the service client may use it. */
export function createTokenEndpoint(
  mint: Mint,
  clientSecret: string,
): (request: IncomingMessage) => Promise<ProviderResponse> {
  const expected = clientAuthorization(clientSecret);
  return async (request) => {
    const { method, headers } = request;
    if (method !== 'POST') return refuse(405, 'invalid_request', { allow: 'POST' });
    // JSON, so that a foreign page cannot send it without a preflight.
    if (!/^application\/json\s*(?:;|$)/i.test(headers['content-type'] ?? '')) return refuse(415, 'invalid_request');
    if (!isSameSecret(headers.authorization ?? '', expected)) {
      return refuse(401, 'invalid_client', { 'www-authenticate': 'Basic realm="local identity provider"' });
    }
    const body = await readBody(request, maxBody);
    if (body === undefined) return refuse(413, 'invalid_request');
    const options = parseTokenOptions(body);
    return options === undefined
      ? refuse(400, 'invalid_request')
      : jsonResponse(200, { access_token: await mint(options) });
  };
}

function refuse(status: number, error: string, headers: Readonly<Record<string, string>> = {}): ProviderResponse {
  return jsonResponse(status, { error }, headers);
}
