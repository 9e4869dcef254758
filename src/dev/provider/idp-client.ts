import { parseJsonObject } from '../../core/jose/json.ts';
import { createOutbound, type Outbound } from '../../core/outbound/outbound.ts';
import { clientAuthorization, devGrant } from '../tokens/dev-token.ts';
import type { TokenOptions } from '../tokens/token-options.ts';
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
      throw new LocalIdpFailure('The local identity provider does not respond', cause);
    } finally {
      outbound.close();
    }
  };
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
      const { status, value } = await send('token', {
        ...{ method: 'POST', type: 'application/x-www-form-urlencoded' },
        body: String(new URLSearchParams({ grant_type: devGrant, order: JSON.stringify(options) })),
        authorization: clientAuthorization(clientSecret),
      });
      const token = value['access_token'];
      if (typeof token !== 'string') {
        throw new LocalIdpFailure(`The local identity provider refused the request with status ${status}`);
      }
      return token;
    },
  };
}
