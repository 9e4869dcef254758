import type { IncomingMessage } from 'node:http';
import { isSameSecret } from '../../core/http/same-secret.ts';
import { clientIds } from '../provider/defaults.ts';
import { jsonResponse, type ProviderResponse, readBody } from '../provider/response.ts';
import type { Minting } from './minting.ts';
import { parseTokenOptions } from './token-options.ts';

export const devTokenPath = '/dev/token';

export const introspectionPath = '/dev/introspection';

/** Maximum size of a request body, in bytes. */
const maxBody = 4096;

/** Authorization header of the service client (RFC 6749 §2.3.1). */
export function clientAuthorization(clientSecret: string): string {
  return `Basic ${Buffer.from(`${clientIds.service}:${clientSecret}`).toString('base64')}`;
}

interface Endpoint {
  /** Default: any media type. */
  readonly contentType?: RegExp;
  /** Returns the value of the response; `undefined` if the body is not valid. */
  respond(body: string): object | undefined | Promise<object | undefined>;
}

/** Creates the endpoints for tokens, by path. Only the service client may use them (RFC 7662 §2.1). */
export function createTokenEndpoints(
  { mint, introspect }: Minting,
  clientSecret: string,
): ReadonlyMap<string, (request: IncomingMessage) => Promise<ProviderResponse>> {
  const expected = clientAuthorization(clientSecret);
  const serve =
    ({ contentType, respond }: Endpoint) =>
    async (request: IncomingMessage): Promise<ProviderResponse> => {
      const { method, headers } = request;
      if (method !== 'POST') return refuse(405, 'invalid_request', { allow: 'POST' });
      if (contentType?.test(headers['content-type'] ?? '') === false) return refuse(415, 'invalid_request');
      if (!isSameSecret(headers.authorization ?? '', expected)) {
        return refuse(401, 'invalid_client', { 'www-authenticate': 'Basic realm="local identity provider"' });
      }
      const body = await readBody(request, maxBody);
      if (body === undefined) return refuse(413, 'invalid_request');
      const value = await respond(body);
      return value === undefined ? refuse(400, 'invalid_request') : jsonResponse(200, value);
    };
  return new Map([
    [
      // Any deviation is possible. The body must be JSON, so that a foreign page cannot send it without a preflight.
      devTokenPath,
      serve({
        contentType: /^application\/json\s*(?:;|$)/i,
        async respond(body) {
          const options = parseTokenOptions(body);
          return options && { access_token: await mint(options) };
        },
      }),
    ],
    [
      introspectionPath,
      serve({
        respond(body) {
          const token = new URLSearchParams(body).get('token');
          return token === null ? undefined : introspect(token);
        },
      }),
    ],
  ]);
}

function refuse(status: number, error: string, headers: Readonly<Record<string, string>> = {}): ProviderResponse {
  return jsonResponse(status, { error }, headers);
}

// Equal length for timingSafeEqual.
