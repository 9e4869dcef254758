// Starts identity providers, signs in by openid-client, and authorizes their tokens by the library of the build. Prints the table
// of docs/providers.md, and fails if the page has another row. Providers that are not installed are skipped, with the packages that they need.
import { readFileSync } from 'node:fs';
import * as oidc from 'openid-client';
import { createMemoryReplayStore, createResourceServer } from '../../dist/index.js';
import { makeFolder } from '../shared/folder.js';
import { findFreePort } from '../shared/network.js';

const names = { glewlwyd: 'Glewlwyd', lemonldap: 'LemonLDAP::NG', 'oidc-provider': 'oidc-provider' };
const [audience, callback] = ['https://api.example/', 'http://localhost/callback'];

/** Creates the client of a provider and the library. */
async function connect(provider) {
  const { issuer, client } = provider;
  const method = oidc.ClientSecretBasic(client.secret);
  const config = await oidc.discovery(new URL(issuer), client.id, {}, method, {
    execute: [oidc.allowInsecureRequests],
  });
  const dpop = { replay: createMemoryReplayStore({ capacity: 100, since: 0 }) };
  const server = createResourceServer({ issuers: [{ issuer, insecure: true }], audience, dpop });
  return { ...provider, config, server };
}

/** Authorizes a token, with a proof of the client. */
async function authorize({ config, server }, token, DPoP) {
  let outcome;
  const send = config[oidc.customFetch] ?? fetch;
  config[oidc.customFetch] = async (url, { method, headers }) => {
    const request = { method, url: String(url), headers: new Headers(headers) };
    outcome = await server.authorize(request).then(
      (access) => access.scheme,
      (error) => error.reason,
    );
    return new Response();
  };
  await oidc.fetchProtectedResource(config, token, new URL(audience), 'GET', undefined, undefined, { DPoP });
  config[oidc.customFetch] = send;
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
const asWord = (outcome) => (outcome === 'Bearer' || outcome === 'DPoP' ? 'yes' : outcome);

const features = {
  code: async (setup) => {
    setup.tokens = await getTokens(setup);
    return asWord(await authorize(setup, setup.tokens.access_token));
  },
  'client credentials': async (setup) => {
    const asked = { scope: 'read', resource: audience };
    return asWord(await authorize(setup, (await oidc.clientCredentialsGrant(setup.config, asked)).access_token));
  },
  DPoP: async (setup) => {
    const handle = oidc.getDPoPHandle(setup.config, await oidc.randomDPoPKeyPair('ES256'));
    const { access_token } = await getTokens(setup, handle);
    return claimsOf(access_token).cnf?.jkt === undefined ? 'no' : asWord(await authorize(setup, access_token, handle));
  },
  introspection: async ({ config, tokens }) =>
    (await oidc.tokenIntrospection(config, tokens.access_token)).active ? 'yes' : 'no',
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
  'back-channel logout': async ({ config }) =>
    config.serverMetadata().backchannel_logout_supported === true ? 'yes' : 'not announced',
};

/** Tries each feature; an error is its own word. */
async function examine(name) {
  const { needs, isInstalled, start } = await import(`./${name}.js`);
  if (!isInstalled()) return `not tried: apt-get install --no-install-recommends ${needs.join(' ')}`;
  const folder = makeFolder(`provider-${name}`);
  const setup = await connect(await start({ folder, port: await findFreePort(), audience, callback }));
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
  return words.join(' | ');
}

const rows = [];
const chosen = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(names);
for (const name of chosen) rows.push(`| ${names[name]} | ${await examine(name)} |`);
const columns = ['provider', ...Object.keys(features)];
console.log(`| ${columns.join(' | ')} |\n|${' --- |'.repeat(columns.length)}\n${rows.join('\n')}`);
const guide = readFileSync(new URL('../../docs/providers.md', import.meta.url), 'utf8');
const others = rows.filter((row) => !row.includes('not tried') && !guide.includes(row));
if (others.length > 0) console.error(`docs/providers.md has other rows:\n${others.join('\n')}`);
process.exit(others.length > 0 ? 1 : 0);
