// Glewlwyd of Debian's package `glewlwyd`, set up by its API as docs/providers.md says.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { isOpen, until } from '../shared/network.js';
import { startChild } from '../shared/processes.js';
import { callApi } from './call-api.js';
import { makePemKeys } from './lemonldap.js';

const schema = '/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3';

export const needs = ['glewlwyd', 'sqlite3'];
export const isInstalled = () => existsSync('/usr/bin/glewlwyd') && existsSync('/usr/bin/sqlite3');

export async function start({ folder, port, audience, callback, receiver }) {
  const origin = `http://localhost:${port}`;
  const database = `${folder}/glewlwyd.db`;
  execFileSync('sqlite3', [database], { input: readFileSync(schema) });
  const settings = {
    ...{ port: String(port), external_url: `"${origin}"`, bind_address: '"127.0.0.1"', log_mode: '"console"' },
    log_level: '"ERROR"',
  };
  const lines = readFileSync('/etc/glewlwyd/glewlwyd.conf', 'utf8')
    .replace(/^@include.*$/m, `database = { type = "sqlite3"; path = "${database}"; };`)
    .split('\n')
    .filter((line) => !Object.keys(settings).some((name) => line.startsWith(`${name}=`)));
  const configured = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
  writeFileSync(`${folder}/glewlwyd.conf`, [...configured, ...lines].join('\n'));
  startChild(['glewlwyd', `--config-file=${folder}/glewlwyd.conf`], { stdio: 'ignore' });
  await until(() => isOpen(port), 'Glewlwyd does not start');

  let cookie = '';
  const call = (path, json, method = 'POST') => callApi(`${origin}/api/${path}`, { json, method, headers: { cookie } });
  const signIn = async (username, password) => {
    cookie = await callApi(`${origin}/api/auth/`, { json: { username, password } });
  };
  const [key, cert] = makePemKeys();
  const off = ['token', 'none', 'password', 'device'].map((name) => [`auth-type-${name}-enabled`, false]);
  const on = ['code', 'id-token', 'client', 'refresh'].map((name) => [`auth-type-${name}-enabled`, true]);
  const parameters = {
    ...{ iss: `${origin}/api/oidc`, 'jwt-type': 'rsa', 'jwt-key-size': '256', key, cert, 'subject-type': 'public' },
    ...{ 'access-token-duration': 3600, 'refresh-token-duration': 86_400, 'code-duration': 600 },
    ...{ 'session-cookie-name': 'GSID', 'session-cookie-expiration': 86_400, 'jwks-show': true },
    ...{ 'refresh-token-rolling': true, 'refresh-token-one-use': 'always', 'pkce-allowed': true },
    ...{ 'allow-non-oidc': true, 'allowed-scope': ['openid', 'read'], ...Object.fromEntries([...on, ...off]) },
    ...{
      'resource-allowed': true,
      'resource-scope': { read: [audience] },
      'resource-scope-and-client-property': false,
    },
    ...{ 'oauth-dpop-allowed': true, 'oauth-dpop-iat-duration': 60 },
    ...{ 'session-management-allowed': true, 'back-channel-logout-allowed': true, 'name-claim': 'no' },
    ...{ 'email-claim': 'no', 'scope-claim': 'no', 'address-claim': { type: 'no' }, claims: [], scope: [] },
    ...{ 'introspection-revocation-allowed': true, 'introspection-revocation-allow-target-client': true },
    'introspection-revocation-auth-scope': [],
  };
  await signIn('admin', 'password');
  await call('scope/', { name: 'read', password_required: false, scheme: {} });
  await call('mod/plugin/', { module: 'oidc', name: 'oidc', display_name: 'OIDC', parameters, enabled: true });
  const client = { id: 'app', secret: 'secretOfTheClient' };
  await call('client/', {
    ...{ client_id: client.id, name: 'app', confidential: true, enabled: true, scope: ['read', 'openid'] },
    ...{ client_secret: client.secret, redirect_uri: [callback], resource: [audience] },
    backchannel_logout_uri: receiver,
    authorization_type: ['code', 'client_credentials', 'refresh_token'],
    token_endpoint_auth_method: ['client_secret_basic'],
  });
  const user = { username: 'alice', password: 'correct-horse' };
  await call('user/', { ...user, name: 'Alice', scope: ['openid', 'read', 'g_profile'], enabled: true });
  await signIn(user.username, user.password);
  await call(`auth/grant/${client.id}`, { scope: 'openid read' }, 'PUT');
  return {
    ...{ issuer: `${origin}/api/oidc`, client, scope: 'openid read' },
    signIn: (url) => fetch(`${url}&g_continue`, { headers: { cookie }, redirect: 'manual' }),
    signOut({ id_token }) {
      const { sid } = JSON.parse(Buffer.from(id_token.split('.')[1], 'base64url').toString());
      return call(`oidc/session/${sid}/`, undefined, 'DELETE');
    },
  };
}
