// LemonLDAP::NG of Debian's packages, with its configuration in a file and its demonstration users.
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { isOpen, until } from '../shared/network.js';
import { startChild } from '../shared/processes.js';

export const needs = ['liblemonldap-ng-portal-perl', 'libstring-random-perl', 'libio-string-perl', 'libplack-perl'];
const modules = ['Lemonldap/NG/Portal/Main', 'String/Random', 'IO/String', 'Plack'];
export const isInstalled = () => modules.every((name) => existsSync(`/usr/share/perl5/${name}.pm`));

export async function start({ folder, port, audience, callback }) {
  const issuer = `http://localhost:${port}/`;
  const storage = (name) => {
    const [Directory, LockDirectory] = [`${folder}/${name}`, `${folder}/${name}-locks`];
    mkdirSync(Directory);
    mkdirSync(LockDirectory);
    return { Directory, LockDirectory };
  };
  const [oidcServicePrivateKeySig, oidcServicePublicKeySig] = makePemKeys();
  const client = { id: 'app', secret: 'secretOfTheClient' };
  const options = {
    ...{ ClientID: client.id, ClientSecret: client.secret, RedirectUris: callback, BypassConsent: 1 },
    ...{ AccessTokenJWT: 1, AccessTokenSignAlg: 'RS256', IDTokenSignAlg: 'RS256', AdditionalAudiences: audience },
    ...{ AllowClientCredentialsGrant: 1, RefreshToken: 1 },
  };
  const named = Object.entries(options).map(([name, value]) => [`oidcRPMetaDataOptions${name}`, value]);
  const configuration = {
    ...{ cfgNum: 1, cfgAuthor: 'docs', cfgDate: 1, cfgVersion: '2.0', key: 'a-key-of-this-run', portal: issuer },
    ...{ domain: 'localhost', cookieName: 'lemonldap', securedCookie: 0, requireToken: 0, whatToTrace: 'uid' },
    ...{ globalStorage: 'Apache::Session::File', globalStorageOptions: storage('sessions') },
    ...{ persistentStorage: 'Apache::Session::File', persistentStorageOptions: storage('persistent') },
    localSessionStorage: 'Cache::FileCache',
    localSessionStorageOptions: { namespace: 'portal', cache_root: `${folder}/cache` },
    ...{ authentication: 'Demo', userDB: 'Same', passwordDB: 'Demo' },
    // Any plugin that loads: the default draws pictures, for which the package only suggests the modules.
    captcha: '::Plugins::SingleSession',
    ...{ issuerDBOpenIDConnectActivation: 1, issuerDBOpenIDConnectPath: '^/oauth2/', issuerDBOpenIDConnectRule: 1 },
    ...{ oidcServiceMetaDataIssuer: issuer, oidcServicePrivateKeySig, oidcServicePublicKeySig },
    ...{ oidcServiceKeyIdSig: 'k1', oidcServiceAllowAuthorizationCodeFlow: 1, oidcServiceAllowOffline: 1 },
    ...{ oidcRPMetaDataOptions: { rp: Object.fromEntries(named) }, oidcRPMetaDataExportedVars: { rp: {} } },
    ...{ oidcRPMetaDataScopeRules: { rp: { read: '1' } }, oidcRPMetaDataMacros: {}, groups: {}, macros: {} },
    ...{ locationRules: {}, exportedHeaders: {} },
  };
  mkdirSync(`${folder}/conf`);
  writeFileSync(`${folder}/conf/lmConf-1.json`, JSON.stringify(configuration));
  const file = `${folder}/lemonldap-ng.ini`;
  const templates = '/usr/share/lemonldap-ng/portal/templates';
  writeFileSync(
    file,
    `[all]\nlogLevel = error\n[configuration]\ntype = File\ndirName = ${folder}/conf\n[portal]\ntemplateDir = ${templates}\n`,
  );
  const run = `Lemonldap::NG::Portal::Main->run({ configStorage => { confFile => '${file}' }, protection => 'none' });`;
  writeFileSync(`${folder}/portal.psgi`, `use Lemonldap::NG::Portal::Main;\n${run}\n`);
  const server = ['-s', 'HTTP::Server::PSGI', '-E', 'deployment', '-o', '127.0.0.1', '-p', String(port)];
  startChild(['plackup', ...server, `${folder}/portal.psgi`], {
    ...{ stdio: 'ignore', env: { ...process.env, LLNG_DEFAULTCONFFILE: file } },
  });
  await until(() => isOpen(port), 'LemonLDAP::NG does not start');
  const body = new URLSearchParams({ user: 'dwho', password: 'dwho' });
  return {
    ...{ issuer, client, scope: 'openid read offline_access' },
    signIn: (url) => fetch(url, { method: 'POST', body, redirect: 'manual' }),
  };
}

export function makePemKeys() {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', {
    ...{ modulusLength: 2048, publicKeyEncoding: { type: 'spki', format: 'pem' } },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  return [privateKey, publicKey];
}
