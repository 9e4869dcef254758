import { parseJsonObject } from '../../core/jose/json.ts';
import { createOutbound, type Outbound } from '../../core/outbound/outbound.ts';
import { clientAuthorization, devTokenPath } from '../tokens/dev-token.ts';
import { isPlain, type TokenOptions } from '../tokens/token-options.ts';
import { LocalIdpFailure } from './failure.ts';
import type { Identity } from './identity.ts';

const limits = { timeoutSeconds: 10, maxBytes: 64 * 1024 };

/** Creates a client that trusts the certificate of this identity. */
export function createIdpClient(issuer: string, { certificate, clientSecret }: Identity) {
  const send = async (path: string, request: Parameters<Outbound['fetchAny']>[1] = {}) => {
    const outbound = createOutbound({ ca: certificate, environment: {} });
    try {
      const { status, body } = await outbound.fetchAny(new URL(path, issuer).href, request, limits);
      return { status, value: parseJsonObject(body) ?? {} };
    } catch (cause) {
      throw new LocalIdpFailure('The local identity provider does not respond.', { cause });
    } finally {
      outbound.close();
    }
  };
  const post = (path: string, type: string, body: string) =>
    send(path, { method: 'POST', type, body, authorization: clientAuthorization(clientSecret) });
  return {
    issuer,
    async isRunning(): Promise<boolean> {
      try {
        const { value } = await send('.well-known/openid-configuration');
        return value['issuer'] === issuer;
      } catch {
        return false;
      }
    },
    async getToken(options: TokenOptions): Promise<string> {
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

export type IdpClient = ReturnType<typeof createIdpClient>;

/** Body of a client credentials request (RFC 6749 §4.4.2). */
function tokenForm({ scope }: TokenOptions): string {
  return new URLSearchParams({ grant_type: 'client_credentials', ...(scope !== undefined && { scope }) }).toString();
}
