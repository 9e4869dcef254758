// Two instances over one Redis, with a provider that ends sessions: the scene of the rows about revocations.
import { askOnce, openAsker } from '../load/asker.js';
import { processors } from '../shared/processes.js';
import { startProvider } from '../shared/provider.js';
import { signJws } from '../shared/tokens.js';
import { startService } from './service.js';
import { audience, makeEcKey } from './tokens.js';

const event = 'http://schemas.openid.net/event/backchannel-logout';
const path = '/api/private';
const now = () => Math.floor(Date.now() / 1000);

/** Opens the provider of all rows. `sessionOf(sid)` has an access token and a logout token. */
export async function openProvider(identity) {
  // Cheaper to sign than RSA: rows need thousands of tokens.
  const key = makeEcKey('key-1');
  const provider = await startProvider({ identity, keys: [key], maxAge: undefined });
  const { domain, issuer } = provider;
  const sign = (typ, claims) =>
    signJws({ alg: 'ES256', kid: key.kid, typ }, { iss: issuer, iat: now(), ...claims }, key.privateKey);
  const token = (sid) => sign('at+jwt', { aud: audience, sub: 'user', sid, exp: now() + 3600, scope: 'read:messages' });
  const logoutToken = (sid) =>
    sign('logout+jwt', { aud: 'app', sid, jti: sid, exp: now() + 600, events: { [event]: {} } });
  return { domain, issuer, identity, token, logoutToken, stop: () => provider.stop() };
}

/** Starts an instance. Resolves when it is ready. */
export async function startInstance(provider, redis) {
  const { identity } = provider;
  const environment = { LOGOUT_CLIENTS: 'app', REVOCATION_STORE: redis.url, ALGORITHMS: 'ES256' };
  // Two instances and what sends to them share all processors of the host.
  const instance = await startService({ provider, identity, environment, processor: processors.all });
  if (!(await instance.awaitReady(15))) throw new Error('the instance does not become ready');
  return instance;
}

/** A request with an access token, as text. */
export const formatRequest = (token) => `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`;

/** A request with a logout token, as text. */
export function formatLogout(logoutToken) {
  const head = 'POST /backchannel-logout HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n';
  return `${head}Content-Length: ${13 + logoutToken.length}\r\n\r\nlogout_token=${logoutToken}`;
}

/** Status of an access token, on a new connection. */
export const ask = (instance, token) => askOnce(instance, formatRequest(token));

/** Status of a logout token, on a new connection. */
export const logOut = (instance, logoutToken) => askOnce(instance, formatLogout(logoutToken));

/** The kinds of a stream of valid tokens. */
export const validKinds = (tokens) => [
  { name: 'valid', weight: 1, expect: [200], timed: true, source: { type: 'fixed', path, tokens } },
];

/** Opens a connection to an instance that has had one response. */
export async function openWatcher({ port }, token) {
  const asker = openAsker(port);
  await asker.ask(formatRequest(token));
  return asker;
}
