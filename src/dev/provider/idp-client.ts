import type { IncomingMessage } from 'node:http';
import { type RequestOptions, request } from 'node:https';
import { text } from 'node:stream/consumers';
import { clientAuthorization, devTokenPath } from '../tokens/dev-token.ts';
import { isPlain, type TokenOptions } from '../tokens/token-options.ts';
import { LocalIdpFailure } from './failure.ts';
import type { Identity } from './identity.ts';

export interface IdpClient {
  readonly issuer: string;
  isRunning(): Promise<boolean>;
  getToken(options: TokenOptions): Promise<string>;
}

/** Limit of a request, in milliseconds. */
const timeout = 3000;

/** Creates a client that trusts only the certificate of this identity. */
export function createIdpClient(issuer: string, { certificate, clientSecret }: Identity): IdpClient {
  const send = async (path: string, options: RequestOptions, body = ''): Promise<JsonResponse> => {
    try {
      const signal = AbortSignal.timeout(timeout);
      return await readJson(new URL(path, issuer), { ...options, ca: certificate, agent: false, signal }, body);
    } catch (cause) {
      throw new LocalIdpFailure('The local identity provider does not respond.', { cause });
    }
  };
  const post = (path: string, contentType: string, body: string): Promise<JsonResponse> => {
    const headers = { authorization: clientAuthorization(clientSecret), 'content-type': contentType };
    return send(path, { method: 'POST', headers }, body);
  };
  return {
    issuer,
    async isRunning() {
      try {
        const { value } = await send('.well-known/openid-configuration', {});
        return value['issuer'] === issuer;
      } catch {
        return false;
      }
    },
    async getToken(options) {
      const { status, value } = isPlain(options)
        ? await post('token', 'application/x-www-form-urlencoded', tokenForm(options))
        : await post(devTokenPath, 'application/json', JSON.stringify(options));
      const token = value['access_token'];
      if (typeof token !== 'string') {
        throw new LocalIdpFailure(`The local identity provider refused the request with status ${status}.`);
      }
      return token;
    },
  };
}

interface JsonResponse {
  readonly status: number | undefined;
  readonly value: Readonly<Record<string, unknown>>;
}

async function readJson(url: URL, options: RequestOptions, body: string): Promise<JsonResponse> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request(url, options, resolve).on('error', reject).end(body);
  });
  return { status: response.statusCode, value: Object(JSON.parse(await text(response))) };
}

/** Body of a client credentials request (RFC 6749 §4.4.2). */
function tokenForm({ scope }: TokenOptions): string {
  return new URLSearchParams({ grant_type: 'client_credentials', ...(scope !== undefined && { scope }) }).toString();
}
