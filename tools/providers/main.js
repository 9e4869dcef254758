// npm run providers [-- NAME…]: starts identity providers, signs in by openid-client and oauth4webapi, and authorizes their tokens
// by the library of the build, and runs doctor. Prints the table of docs/providers.md, and fails if the page has another row.
// Providers that are not installed are skipped, with the packages that they need.
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import * as oauth from 'oauth4webapi';
import * as oidc from 'openid-client';
import { createBackchannelLogout } from '../../dist/adapters/node.js';
import { createMemoryReplayStore, createResourceServer, createRevocations } from '../../dist/index.js';
import { makeFolder } from '../shared/folder.js';
import { makeIdentity } from '../shared/identity.js';
import { findFreePort, listen, until } from '../shared/network.js';
import { table } from '../shared/page.js';
import { startChild } from '../shared/processes.js';

const names = {
  ...{ glewlwyd: 'Glewlwyd', lemonldap: 'LemonLDAP::NG', 'oidc-provider': 'oidc-provider' },
  'better-auth': 'better-auth, provider plugin',
};
const [audience, callback] = ['https://api.example/', 'https://app.example/callback'];

// Providers from npm send logout tokens to public names only. This one leads to the receiver.
const logoutOrigin = 'https://logout.api.example';
const path = '/backchannel-logout';
let receive;
const receiver = `http://127.0.0.1:${await listen(
  createServer((incoming, outgoing) => receive(incoming, outgoing, () => outgoing.writeHead(404).end())),
)}`;
const send = fetch;
globalThis.fetch = (url, options) => {
  if (String(url) !== `${logoutOrigin}${path}`) return send(url, options);
  const { method, headers, body } = options ?? {};
  return send(`${receiver}${path}`, { method, headers, body });
};

/** Creates the client of a provider and the library. */
async function open(provider) {
  const { issuer, client, algorithms = ['RS256'] } = provider;
  const method = oidc.ClientSecretBasic(client.secret);
  const config = await oidc.discovery(new URL(issuer), client.id, {}, method, {
    execute: [oidc.allowInsecureRequests],
  });
  const dpop = { replay: createMemoryReplayStore({ capacity: 100, since: 0 }) };
  const issuers = [{ issuer, insecure: true, rules: { algorithms } }];
  const server = createResourceServer({ issuers, audience, dpop, revocations: createRevocations() });
  const asClient = [config.serverMetadata(), config.clientMetadata(), oauth.ClientSecretBasic(client.secret)];
  return { ...provider, config, server, asClient };
}

/** Authorizes a token, with a proof of the client. */
async function authorize({ config, server }, token, DPoP) {
  let outcome;
  const before = config[oidc.customFetch] ?? fetch;
  config[oidc.customFetch] = async (url, { method, headers }) => {
    const request = { method, url: String(url), headers: new Headers(headers) };
    outcome = await server.authorize(request).then(
      (access) => access.scheme,
      (error) => error.reason,
    );
    return new Response();
  };
  await oidc.fetchProtectedResource(config, token, new URL(audience), 'GET', undefined, undefined, { DPoP });
  config[oidc.customFetch] = before;
  return outcome;
}

/** Signs a user in, by an authorization code with PKCE. */
async function getTokens({ config, scope, signIn }, DPoP) {
  const pkceCodeVerifier = oidc.randomPKCECodeVerifier();
  const [expectedState, expectedNonce] = [oidc.randomState(), oidc.randomNonce()];
  const url = oidc.buildAuthorizationUrl(config, {
    ...{ redirect_uri: callback, scope, resource: audience, state: expectedState, nonce: expectedNonce },
    code_challenge: await oidc.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
  });
  const response = await signIn(url.href);
  const location = response.headers.get('location') ?? '';
  if (!location.startsWith(callback)) throw new Error(`no redirect to the client: ${response.status}`);
  const checks = { pkceCodeVerifier, expectedState, expectedNonce };
  return oidc.authorizationCodeGrant(config, new URL(location), checks, { resource: audience }, { DPoP });
}

const claimsOf = (token) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
const insecure = { [oauth.allowInsecureRequests]: true };
const asWord = (outcome) => (outcome === 'Bearer' || outcome === 'DPoP' ? 'yes' : outcome);

const features = {
  code: async (setup) => {
    setup.tokens = await getTokens(setup);
    return asWord(await authorize(setup, setup.tokens.access_token));
  },
  'client credentials': async (setup) => {
    const [metadata, client, secret] = setup.asClient;
    const asked = { scope: 'read', resource: audience };
    const response = await oauth.clientCredentialsGrantRequest(metadata, client, secret, asked, insecure);
    const { access_token } = await oauth.processClientCredentialsResponse(metadata, client, response);
    return asWord(await authorize(setup, access_token));
  },
  DPoP: async (setup) => {
    const handle = oidc.getDPoPHandle(setup.config, await oidc.randomDPoPKeyPair('ES256'));
    const { access_token } = await getTokens(setup, handle);
    return claimsOf(access_token).cnf?.jkt === undefined ? 'no' : asWord(await authorize(setup, access_token, handle));
  },
  introspection: async ({ asClient, tokens }) => {
    const [metadata, client, secret] = asClient;
    const response = await oauth.introspectionRequest(metadata, client, secret, tokens.access_token, insecure);
    return (await oauth.processIntrospectionResponse(metadata, client, response)).active ? 'yes' : 'no';
  },
  refresh: async (setup) => {
    const { refresh_token } = setup.tokens;
    if (refresh_token === undefined) return 'no';
    setup.refreshed = await oidc.refreshTokenGrant(setup.config, refresh_token, { resource: audience });
    return asWord(await authorize(setup, setup.refreshed.access_token));
  },
  rotation: async ({ config, tokens, refreshed }) => {
    if (refreshed?.refresh_token === undefined || refreshed.refresh_token === tokens.refresh_token) return 'no';
    return oidc.refreshTokenGrant(config, tokens.refresh_token).then(
      () => 'the old one stays valid',
      () => 'yes',
    );
  },
  '`sid`': async ({ tokens }) => (claimsOf(tokens.access_token).sid === undefined ? 'no' : 'yes'),
  'back-channel logout': async (setup) => {
    const { signOut, server, client } = setup;
    if (signOut === undefined) return 'no';
    const tokens = await getTokens(setup);
    const subject = claimsOf(tokens.access_token).sid === undefined;
    receive = createBackchannelLogout(server, { clientIds: [client.id], subject });
    await signOut(tokens);
    const isRefused = async () => (await authorize(setup, tokens.access_token)) === 'revoked_token';
    await until(isRefused, 'the token is still admitted after the logout');
    return subject ? 'of the user' : 'yes';
  },
  '`doctor`': async ({ config, issuer, client, algorithms = ['RS256'], signOut, tokens, folder }) => {
    const [RULES, clientSecretFile, tokenFile] = ['rules.json', 'secret', 'token'].map((name) => `${folder}/${name}`);
    // The secret is not sent over plain http.
    const identity = await makeIdentity(folder);
    const { port } = new URL(issuer);
    const bridge = createTlsServer({ cert: identity.certificate, key: identity.key }, (socket) =>
      socket.pipe(connect(Number(port), 'localhost')).pipe(socket),
    );
    const endpoint = new URL(config.serverMetadata().introspection_endpoint ?? '');
    Object.assign(endpoint, { protocol: 'https:', port: await listen(bridge) });
    const introspection = { endpoint, clientId: client.id, clientSecretFile };
    const entry = { issuer, insecure: true, audience, algorithms, introspection };
    writeFileSync(RULES, JSON.stringify({ issuers: { main: entry }, rules: [{ id: 'all', path: '/**' }] }));
    writeFileSync(clientSecretFile, client.secret);
    writeFileSync(tokenFile, tokens.access_token);
    const subject = claimsOf(tokens.access_token).sid === undefined;
    const logout = signOut && { LOGOUT_CLIENTS: client.id, LOGOUT_SUBJECT: String(subject) };
    const doctor = startChild([process.execPath, 'dist/cli/main.js', 'doctor', '--token-file', tokenFile], {
      ...{ stdio: ['ignore', 2, 2], env: { NODE_EXTRA_CA_CERTS: identity.certificateFile, RULES, ...logout } },
    });
    return (await doctor.ended) === 0 ? 'healthy' : 'fails';
  },
};

/** Tries each feature; an error is its own word. */
async function examine(name) {
  const { needs, isInstalled, start } = await import(`./${name}.js`);
  if (!isInstalled()) return [`not tried: apt-get install --no-install-recommends ${needs.join(' ')}`];
  const folder = makeFolder(`provider-${name}`);
  const places = { audience, callback, logout: `${logoutOrigin}${path}`, receiver: `${receiver}${path}` };
  const setup = { ...(await open(await start({ folder, port: await findFreePort(), ...places }))), folder };
  const words = [];
  for (const [feature, find] of Object.entries(features)) {
    words.push(
      await find(setup).catch((error) => {
        console.error(`${names[name]}, ${feature}: ${error.message} ${error.cause?.message ?? error.error ?? ''}`);
        return 'no';
      }),
    );
  }
  setup.server.close();
  return words;
}

const rows = [];
const chosen = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(names);
for (const name of chosen) rows.push([names[name], ...(await examine(name))]);
const output = table(['provider', ...Object.keys(features)], rows);
console.log(output);
const guide = readFileSync(new URL('../../docs/providers.md', import.meta.url), 'utf8');
const others = output
  .split('\n')
  .filter((row, index) => index > 1 && !row.includes('not tried') && !guide.includes(row));
if (others.length > 0) console.error(`docs/providers.md has other rows:\n${others.join('\n')}`);
process.exit(others.length > 0 ? 1 : 0);
