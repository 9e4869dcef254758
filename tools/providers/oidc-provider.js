// oidc-provider from npm, in this process. It issues JWTs only for a resource whose `accessTokenFormat` says so.
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import { listen } from '../shared/network.js';

export const needs = [];
export const isInstalled = () => true;

export async function start({ port, audience, callback, logout }) {
  const { default: Provider } = await import('oidc-provider');
  const issuer = `http://localhost:${port}`;
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const client = { id: 'app', secret: 'secretOfTheClient' };
  const resource = { scope: 'read', audience, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } } };
  /** @type {any} */
  const configuration = {
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: 'k1', use: 'sig', alg: 'RS256' }] },
    clients: [
      {
        ...{ client_id: client.id, client_secret: client.secret, redirect_uris: [callback] },
        grant_types: ['authorization_code', 'refresh_token', 'client_credentials'],
        ...{ backchannel_logout_uri: logout, backchannel_logout_session_required: true },
      },
    ],
    // Without it, no request is sent to an address that is not public.
    ...{ fetch, scopes: ['openid', 'offline_access', 'read'], cookies: { keys: ['a-key-of-this-run'] } },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    loadExistingGrant: async ({ oidc }) => {
      const existing = oidc.session.grantIdFor(oidc.client.clientId);
      if (existing !== undefined) return oidc.provider.Grant.find(existing);
      const grant = new oidc.provider.Grant({ accountId: oidc.session.accountId, clientId: oidc.client.clientId });
      grant.addOIDCScope('openid offline_access read');
      grant.addResourceScope(audience, 'read');
      await grant.save();
      return grant;
    },
    issueRefreshToken: () => true,
    extraTokenClaims: ({ oidc }) => ({ sid: (oidc.entities.AuthorizationCode ?? oidc.entities.RefreshToken)?.sid }),
    features: {
      ...{ devInteractions: { enabled: false }, clientCredentials: { enabled: true }, dPoP: { enabled: true } },
      ...{ introspection: { enabled: true }, backchannelLogout: { enabled: true } },
      resourceIndicators: {
        ...{ enabled: true, defaultResource: () => audience, useGrantedResource: () => true },
        getResourceServerInfo: () => resource,
      },
    },
  };
  const provider = new Provider(issuer, configuration);
  const callbackOf = provider.callback();
  const server = createServer(async (incoming, outgoing) => {
    if (!incoming.url?.startsWith('/interaction/')) return callbackOf(incoming, outgoing);
    await provider.interactionFinished(incoming, outgoing, { login: { accountId: 'alice' } });
  });
  await listen(server, port);

  const cookies = new Map();
  async function browse(url, /** @type {any} */ body = undefined) {
    for (let [at, hops] = [url, 0]; ; hops++) {
      const cookie = [...cookies].map((pair) => pair.join('=')).join('; ');
      const form = hops === 0 && body ? { method: 'POST', body } : {};
      const response = await fetch(at, { redirect: 'manual', headers: { cookie }, ...form });
      for (const each of response.headers.getSetCookie()) {
        const [name, value = ''] = each.split(/[=;]/, 2);
        if (value === '') cookies.delete(name);
        else cookies.set(name, value);
      }
      const location = response.headers.get('location');
      if (location === null || location.startsWith(callback) || hops > 9) return response;
      at = new URL(location, at).href;
    }
  }
  return {
    ...{ issuer, client, scope: 'openid read offline_access', signIn: browse },
    async signOut({ id_token }) {
      const page = await (await browse(`${issuer}/session/end?id_token_hint=${id_token}`)).text();
      const [, xsrf = ''] = page.match(/name="xsrf" value="(\w+)"/) ?? [];
      await browse(`${issuer}/session/end/confirm`, new URLSearchParams({ xsrf, logout: 'yes' }));
    },
  };
}
