// An identity provider with @better-auth/oauth-provider, over TLS, in memory.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:https';
import { oauthProvider } from '@better-auth/oauth-provider';
import { betterAuth } from 'better-auth';
import { memoryAdapter } from 'better-auth/adapters/memory';
import { getAuthTables } from 'better-auth/db';
import { jwt } from 'better-auth/plugins';

/** Starts the provider on a port of loopback. `resource` is the audience of its access tokens. */
export async function startProvider({ identity, port, resource, scopes }) {
  const origin = `https://localhost:${port}`;
  const plugins = [
    jwt({ jwks: { keyPairConfig: { alg: 'RS256' } } }),
    oauthProvider({
      ...{ loginPage: '/sign-in', consentPage: '/consent', scopes },
      ...{ resources: [resource], enforcePerClientResources: false },
    }),
  ];
  const tables = Object.values(getAuthTables({ plugins })).map(({ modelName }) => [modelName, []]);
  const auth = betterAuth({
    ...{ baseURL: origin, secret: randomBytes(32).toString('hex'), plugins },
    ...{ database: memoryAdapter(Object.fromEntries(tables)), emailAndPassword: { enabled: true } },
    ...{ rateLimit: { enabled: false }, telemetry: { enabled: false } },
  });
  const server = createServer({ cert: identity.certificate, key: identity.key }, async (incoming, outgoing) => {
    const chunks = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const { method, url } = incoming;
    const headers = new Headers(Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]));
    const body = chunks.length === 0 ? null : Buffer.concat(chunks);
    const response = await auth.handler(new Request(`${origin}${url}`, { method, headers, body }));
    outgoing.writeHead(response.status, [...response.headers].flat()).end(Buffer.from(await response.arrayBuffer()));
  });
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return {
    origin,
    issuer: `${origin}/api/auth`,
    /** Registers a client without consent, as an administrator does. Returns its id. */
    async register(cookie, metadata) {
      const body = { skip_consent: true, token_endpoint_auth_method: 'none', scope: scopes.join(' '), ...metadata };
      return (await auth.api.adminCreateOAuthClient({ headers: new Headers({ cookie }), body })).client_id;
    },
    stop() {
      server.closeAllConnections();
      return once(server.close(), 'close');
    },
  };
}
