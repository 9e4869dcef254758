// Back-channel logout from @better-auth/oauth-provider over TLS: users log in, call the service, and sign out. Its peers are
// exact versions, which its newest siblings no longer accept: so its lock file is separate. Needs npm and a build.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { Agent, setGlobalDispatcher } from 'undici';
import { installPackages } from '../bench/install.js';
import { makeFolder } from '../shared/folder.js';
import { makeIdentity } from '../shared/identity.js';
import { findFreePort, isOpen, until } from '../shared/network.js';
import { endChild, startChild } from '../shared/processes.js';

installPackages(fileURLToPath(new URL('.', import.meta.url)));
// As a URL: the types of its packages exist only after the installation.
const { startProvider } = await import(new URL('provider.js', import.meta.url).href);

const folder = makeFolder('better-auth');
const identity = await makeIdentity(folder);
const servicePort = await findFreePort();
const [audience, callback] = ['https://api.example/', 'https://app.example/callback'];
// The provider sends logout tokens to public names only. This one leads to the service.
const logoutOrigin = 'https://logout.api.example';

const logouts = [];
setGlobalDispatcher(
  new Agent({ connect: { ca: identity.certificate, servername: 'localhost' } }).compose(
    (dispatch) => (options, handler) => {
      if (String(options.origin) !== logoutOrigin) return dispatch(options, handler);
      logouts.push(options.path);
      return dispatch({ ...options, origin: `https://127.0.0.1:${servicePort}` }, handler);
    },
  ),
);

const provider = await startProvider({
  ...{ identity, port: await findFreePort(), resource: audience },
  scopes: ['openid', 'offline_access', 'read:messages'],
});

/**
 * Calls the provider as a browser does.
 *
 * @param {string} path
 * @param {{ cookie?: string, json?: object, form?: Record<string, string>, method?: string }} options
 */
async function call(path, { cookie, json, form, method = 'POST' }) {
  const type = json ? 'application/json' : 'application/x-www-form-urlencoded';
  const response = await fetch(`${provider.issuer}${path}`, {
    ...{ method, redirect: 'manual' },
    headers: { origin: provider.origin, ...(cookie && { cookie }), ...(method === 'POST' && { 'content-type': type }) },
    ...(method === 'POST' && { body: json ? JSON.stringify(json) : String(new URLSearchParams(form)) }),
  });
  assert(response.status < 400, `${path.split('?')[0]} → ${response.status} ${await response.clone().text()}`);
  return response;
}

/** Signs a user up or in. Returns the cookies of the new session. */
async function signIn(path, name) {
  const json = { email: `${name}@users.example`, password: 'correct-horse-battery', name };
  const response = await call(path, { json });
  return response.headers
    .getSetCookie()
    .map((each) => each.split(';')[0])
    .join('; ');
}

/** Gets an access token for the session by an authorization code. */
async function authorize(cookie, client_id, scope) {
  const code_verifier = randomBytes(32).toString('base64url');
  const code_challenge = createHash('sha256').update(code_verifier).digest('base64url');
  const common = { client_id, redirect_uri: callback, resource: audience };
  const query = { ...common, scope, response_type: 'code', state: 's', code_challenge, code_challenge_method: 'S256' };
  const redirect = await call(`/oauth2/authorize?${new URLSearchParams(query)}`, { cookie, method: 'GET' });
  const location = redirect.headers.get('location') ?? JSON.parse(await redirect.text()).url;
  const code = new URL(location).searchParams.get('code') ?? '';
  const form = { ...common, grant_type: 'authorization_code', code, code_verifier };
  return JSON.parse(await (await call('/oauth2/token', { form })).text()).access_token;
}

const ann = await signIn('/sign-up/email', 'ann');
const client = await provider.register(ann, {
  ...{ redirect_uris: [callback], grant_types: ['authorization_code', 'refresh_token'] },
  backchannel_logout_uri: `${logoutOrigin}/backchannel-logout`,
});
const service = startChild([process.execPath, 'dist/cli/main.js', 'serve'], {
  env: {
    ...{ PATH: process.env.PATH, NODE_EXTRA_CA_CERTS: identity.certificateFile, ADMIN_PORT: 'off' },
    ...{ TLS_CERT: identity.certificateFile, TLS_KEY: identity.keyFile, HOST: '127.0.0.1', PORT: `${servicePort}` },
    ...{ ISSUER: provider.issuer, IDP_AUDIENCE: audience, LOGOUT_CLIENTS: client },
  },
  stdio: ['ignore', 'ignore', 'inherit'],
});

/** Statuses of the service on several connections. */
async function statuses(token) {
  const own = { headers: { authorization: `Bearer ${token}`, connection: 'close' } };
  const calls = Array.from({ length: 8 }, () => fetch(`https://localhost:${servicePort}/api/private-scoped`, own));
  return [...new Set((await Promise.all(calls)).map(({ status }) => status))].join();
}
const expect = async (what, token, status) => {
  await until(async () => (await statuses(token)) === status, `${what}: ${await statuses(token)}, not ${status}`);
  console.log(`${what}: ${status}`);
};

await until(() => isOpen(servicePort), 'the service does not start');
const whole = 'openid offline_access read:messages';
const first = await authorize(ann, client, whole);
const phone = await signIn('/sign-in/email', 'ann');
const second = await authorize(phone, client, whole);
const bob = await authorize(await signIn('/sign-up/email', 'bob'), client, whole);
await expect('the session before its end', first, '200');
await call('/sign-out', { cookie: ann, json: {} });
await expect('the session that has ended', first, '401');
await expect('another session of the user', second, '200');
await call('/revoke-sessions', { cookie: phone, json: {} });
await expect('each session of the user, after revoke-sessions', second, '401');
await expect('another user', bob, '200');
const again = await signIn('/sign-in/email', 'ann');
await expect('a login after that', await authorize(again, client, whole), '200');

const before = logouts.length;
const short = await signIn('/sign-in/email', 'ann');
const unbound = await authorize(short, client, 'openid read:messages');
await call('/sign-out', { cookie: short, json: {} });
await expect('a session without offline_access, which sends no logout token', unbound, '200');
assert.equal(logouts.length, before);
assert.deepEqual(new Set(logouts), new Set(['/backchannel-logout']));

await endChild(service);
await provider.stop();
process.exit(0);
