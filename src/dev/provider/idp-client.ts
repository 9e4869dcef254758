import type { IncomingMessage } from 'node:http';
import { type RequestOptions, request } from 'node:https';
import { text } from 'node:stream/consumers';
import { clientAuthorization, devTokenPath } from '../tokens/dev-token.ts';
import { isPlain, type TokenOrder } from '../tokens/token-order.ts';
import { LocalIdpFailure } from './failure.ts';
import type { Identity } from './identity.ts';

/** A running local identity provider, as its service client sees it. */
export interface IdpClient {
  readonly issuer: string;
  /** Whether a provider with this issuer and our certificate answers. */
  isRunning(): Promise<boolean>;
  /** Gets an access token; rejects with `LocalIdpFailure`. */
  getToken(order: TokenOrder): Promise<string>;
}

/** Milliseconds. */
const timeout = 3000;

/** Talks to the provider over TLS that trusts the certificate of this identity and no other. */
export function createIdpClient(issuer: string, { certificate, clientSecret }: Identity): IdpClient {
  const call = async (path: string, options: RequestOptions, body = ''): Promise<JsonAnswer> => {
    try {
      const signal = AbortSignal.timeout(timeout);
      return await readJson(new URL(path, issuer), { ...options, ca: certificate, agent: false, signal }, body);
    } catch (cause) {
      throw new LocalIdpFailure('The local identity provider does not answer.', { cause });
    }
  };
  const post = (path: string, contentType: string, body: string): Promise<JsonAnswer> => {
    const headers = { authorization: clientAuthorization(clientSecret), 'content-type': contentType };
    return call(path, { method: 'POST', headers }, body);
  };
  return {
    issuer,
    async isRunning() {
      try {
        const { value } = await call('.well-known/openid-configuration', {});
        return value['issuer'] === issuer;
      } catch {
        return false;
      }
    },
    async getToken(order) {
      const { status, value } = isPlain(order)
        ? await post('token', 'application/x-www-form-urlencoded', tokenForm(order))
        : await post(devTokenPath, 'application/json', JSON.stringify(order));
      const token = value['access_token'];
      if (typeof token !== 'string') {
        throw new LocalIdpFailure(`The local identity provider refused the request with status ${status}.`);
      }
      return token;
    },
  };
}

interface JsonAnswer {
  readonly status: number | undefined;
  readonly value: Readonly<Record<string, unknown>>;
}

async function readJson(url: URL, options: RequestOptions, body: string): Promise<JsonAnswer> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request(url, options, resolve).on('error', reject).end(body);
  });
  return { status: response.statusCode, value: Object(JSON.parse(await text(response))) };
}

/** A request for client credentials (RFC 6749 §4.4.2). */
function tokenForm({ scope }: TokenOrder): string {
  return new URLSearchParams({ grant_type: 'client_credentials', ...(scope !== undefined && { scope }) }).toString();
}
