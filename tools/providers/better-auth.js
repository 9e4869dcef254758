// better-auth with @better-auth/oauth-provider, in this process and in memory. Its peers are exact versions, which its newest
// siblings no longer accept: so this folder has its own lock file.
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { installPackages } from '../bench/install.js';
import { listen } from '../shared/network.js';
import { callApi } from './call-api.js';

export const needs = [];
export const isInstalled = () => true;

export async function start({ port, audience, callback, logout }) {
  installPackages(fileURLToPath(new URL('.', import.meta.url)));
  // By name: the types of the packages exist only after the installation.
  const load = (name) => import(name);
  const { oauthProvider } = await load('@better-auth/oauth-provider');
  const { betterAuth } = await load('better-auth');
  const { memoryAdapter } = await load('better-auth/adapters/memory');
  const { getAuthTables } = await load('better-auth/db');
  const { jwt } = await load('better-auth/plugins');
  const origin = `http://localhost:${port}`;
  const scopes = ['openid', 'offline_access', 'read'];
  const options = {
    ...{ loginPage: '/sign-in', consentPage: '/consent', scopes, resources: [audience] },
    ...{ enforcePerClientResources: false, clientPrivileges: () => true },
  };
  const plugins = [jwt(), oauthProvider(options)];
  const tables = Object.values(getAuthTables({ plugins })).map(({ modelName }) => [modelName, []]);
  const auth = betterAuth({
    ...{ baseURL: origin, secret: randomBytes(32).toString('hex'), plugins },
    ...{ database: memoryAdapter(Object.fromEntries(tables)), emailAndPassword: { enabled: true } },
    ...{ rateLimit: { enabled: false }, telemetry: { enabled: false } },
  });
  const server = createServer(async (incoming, outgoing) => {
    const chunks = await incoming.toArray();
    const headers = new Headers(Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]));
    const body = chunks.length === 0 ? null : Buffer.concat(chunks);
    const response = await auth.handler(
      new Request(`${origin}${incoming.url}`, { method: incoming.method, headers, body }),
    );
    outgoing.writeHead(response.status, [...response.headers].flat()).end(Buffer.from(await response.arrayBuffer()));
  });
  await listen(server, port);

  let cookie = '';
  const call = (path, json) => callApi(`${origin}/api/auth${path}`, { json, headers: { origin, cookie } });
  const user = { email: 'alice@users.example', password: 'correct-horse-battery', name: 'alice' };
  cookie = await call('/sign-up/email', user);
  const body = {
    ...{ redirect_uris: [callback], backchannel_logout_uri: logout, scope: scopes.join(' '), skip_consent: true },
    grant_types: ['authorization_code', 'refresh_token', 'client_credentials'],
    ...{ token_endpoint_auth_method: 'client_secret_basic', client_credentials_scopes: ['read'] },
  };
  const { client_id: id, client_secret: secret } = await auth.api.adminCreateOAuthClient({
    ...{ headers: new Headers({ cookie }), body },
  });
  return {
    ...{ issuer: `${origin}/api/auth`, client: { id, secret }, scope: scopes.join(' '), algorithms: ['EdDSA'] },
    // A redirect, as JSON for `fetch`.
    async signIn(url) {
      const response = await fetch(url, { headers: { cookie }, redirect: 'manual' });
      const location = response.headers.get('location') ?? JSON.parse(await response.text()).url;
      return new Response(null, { status: 302, headers: { location } });
    },
    signOut: () => call('/sign-out', {}),
  };
}
