import { parseJsonObject } from '../../core/jose/json.ts';
import { fetchDirectly } from '../../core/outbound/outbound.ts';
import { clientAuthorization, devGrant } from '../tokens/dev-token.ts';
import type { TokenOptions } from '../tokens/token-options.ts';
import { LocalIdpFailure } from './failure.ts';
import type { Identity } from './identity.ts';

const limits = { timeoutSeconds: 10, maxBytes: 64 * 1024 };

/** Creates a client that trusts the certificate of this identity. */
export function createIdpClient(issuer: string, { certificate, clientSecret }: Identity) {
  const trust = { ca: certificate, insecure: false };
  const send = async (path: string, request: Parameters<typeof fetchDirectly>[1] = {}) => {
    const response = await fetchDirectly(new URL(path, issuer), request, limits, trust).catch((cause) => {
      throw new LocalIdpFailure('The local identity provider does not respond', cause);
    });
    return { status: response.status, value: parseJsonObject(response.body) ?? {} };
  };
  return {
    issuer,
    async isRunning(): Promise<boolean> {
      const metadata = await send('.well-known/openid-configuration').catch(() => undefined);
      return metadata?.value['issuer'] === issuer;
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
