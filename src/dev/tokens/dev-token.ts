import type Provider from 'oidc-provider';
import { clientIds } from '../provider/defaults.ts';
import type { Libraries } from '../provider/libraries.ts';
import type { Mint } from './minting.ts';
import { parseTokenOptions } from './token-options.ts';

/** The `grant_type` of tokens with claims or faults that the client chooses. */
export const devGrant = 'urn:portcullis:grant-type:dev';

/** Authorization header of the service client (RFC 6749 §2.3.1). */
export function clientAuthorization(clientSecret: string): string {
  return `Basic ${Buffer.from(`${clientIds.service}:${clientSecret}`).toString('base64')}`;
}

/** Adds tokens with any deviation. Only the service client may request them: other clients register themselves. */
export function registerDevTokens(provider: Provider, { oidc }: Libraries, mint: Mint): void {
  provider.registerGrantType<{ readonly order?: string }>(
    devGrant,
    async (context) => {
      const { client, params } = context.oidc;
      const options = client?.clientId === clientIds.service ? parseTokenOptions(params.order) : undefined;
      if (options === undefined) throw new oidc.errors.InvalidRequest('order is not valid');
      context.body = { access_token: await mint(options) };
    },
    ['order'],
  );
}
