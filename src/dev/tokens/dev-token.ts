import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type Answer, jsonAnswer, readBody } from '../provider/answer.ts';
import { clientIds } from '../provider/defaults.ts';
import type { Mint, Minting } from './minting.ts';
import { parseTokenOrder } from './token-order.ts';

/** Where odd tokens are ordered. */
export const devTokenPath = '/dev/token';

/** Where opaque tokens are asked about (RFC 7662). */
export const introspectionPath = '/dev/introspection';

/** Bytes. */
const maxBody = 4096;

/** The value of the Authorization header that the service client proves itself with (RFC 6749 §2.3.1). */
export function clientAuthorization(clientSecret: string): string {
  return `Basic ${Buffer.from(`${clientIds.service}:${clientSecret}`).toString('base64')}`;
}

/** Answers what an opaque token stands for. Only for the service client (RFC 7662 §2.1). */
export function createIntrospectionEndpoint(
  introspect: Minting['introspect'],
  clientSecret: string,
): (request: IncomingMessage) => Promise<Answer> {
  const expected = digest(clientAuthorization(clientSecret));
  return async (request) => {
    if (request.method !== 'POST') return refuse(405, 'invalid_request', { allow: 'POST' });
    if (!timingSafeEqual(digest(request.headers.authorization ?? ''), expected)) {
      return refuse(401, 'invalid_client', { 'www-authenticate': 'Basic realm="local identity provider"' });
    }
    const body = await readBody(request, maxBody);
    if (body === undefined) return refuse(413, 'invalid_request');
    const token = new URLSearchParams(body).get('token');
    return token === null ? refuse(400, 'invalid_request') : jsonAnswer(200, introspect(token));
  };
}

/**
 * Answers an order for an odd token. Only JSON, so that a page elsewhere cannot send one without a preflight, and
 * only for the service client.
 */
export function createDevTokenEndpoint(
  mint: Mint,
  clientSecret: string,
): (request: IncomingMessage) => Promise<Answer> {
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
    const order = parseTokenOrder(body);
    if (order === undefined) return refuse(400, 'invalid_request');
    return jsonAnswer(200, { access_token: await mint(order) });
  };
}

function refuse(status: number, error: string, headers: Readonly<Record<string, string>> = {}): Answer {
  return jsonAnswer(status, { error }, headers);
}

// Of equal length, whatever was sent.
function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
