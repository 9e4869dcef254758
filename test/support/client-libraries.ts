import * as oauth from 'oauth4webapi';
import * as openid from 'openid-client';
import { clientIds } from '../../src/dev/provider/defaults.ts';

/** Settings of a client library. */
interface Setup {
  readonly issuer: { readonly url: string; readonly clientSecret: string };
  /** Trusts every authority of these tests. */
  readonly fetch: openid.CustomFetch;
  /** Seconds by which the clock of the client is ahead. Default 0. */
  readonly clockSkew?: number;
}

/** One client library with a DPoP key, or without one. */
export interface Session {
  /** Gets a token by client credentials. */
  getToken(): Promise<string>;
  /** Rejects with the error of the library if the response has a challenge. */
  get(url: string, token: string): Promise<Response>;
}

export type Binding = 'bound' | 'free';

const scope = 'read:messages';

/** Client libraries for DPoP, by name. */
export const libraries: Readonly<Record<string, (setup: Setup, binding: Binding) => Promise<Session>>> = {
  'openid-client': async ({ issuer, fetch, clockSkew = 0 }, binding) => {
    const config = await openid.discovery(
      new URL(issuer.url),
      clientIds.service,
      { [openid.clockSkew]: clockSkew },
      openid.ClientSecretBasic(issuer.clientSecret),
      { [openid.customFetch]: fetch },
    );
    // Some of the services are called without TLS.
    openid.allowInsecureRequests(config);
    const keys = await openid.randomDPoPKeyPair('ES256');
    const options = binding === 'bound' ? { DPoP: openid.getDPoPHandle(config, keys) } : {};
    return {
      getToken: async () => (await openid.clientCredentialsGrant(config, { scope }, options)).access_token,
      get: (url, token) =>
        openid.fetchProtectedResource(config, token, new URL(url), 'GET', undefined, undefined, options),
    };
  },
  oauth4webapi: async ({ issuer, fetch, clockSkew = 0 }, binding) => {
    const transport = { [oauth.customFetch]: fetch, [oauth.allowInsecureRequests]: true };
    const discovered = await oauth.discoveryRequest(new URL(issuer.url), transport);
    const server = await oauth.processDiscoveryResponse(new URL(issuer.url), discovered);
    const client: oauth.Client = { client_id: clientIds.service, [oauth.clockSkew]: clockSkew };
    const keys = await oauth.generateKeyPair('ES256');
    const options = binding === 'bound' ? { ...transport, DPoP: oauth.DPoP(client, keys) } : transport;
    const insist = async <T>(act: () => Promise<T>): Promise<T> => {
      try {
        return await act();
      } catch (error) {
        if (!oauth.isDPoPNonceError(error)) throw error;
        return act();
      }
    };
    return {
      getToken: () =>
        insist(async () => {
          const auth = oauth.ClientSecretBasic(issuer.clientSecret);
          const response = await oauth.clientCredentialsGrantRequest(server, client, auth, { scope }, options);
          return (await oauth.processClientCredentialsResponse(server, client, response)).access_token;
        }),
      get: (url, token) =>
        insist(() => oauth.protectedResourceRequest(token, 'GET', new URL(url), undefined, undefined, options)),
    };
  },
};
