import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { calculateJwkThumbprint, createLocalJWKSet, exportJWK, type JSONWebKeySet, jwtVerify } from 'jose';
import * as client from 'openid-client';
import { expect, test } from 'vitest';
import { createBackchannelLogout } from '../../src/adapters/node.ts';
import type { AccessError } from '../../src/core/failures.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { createRevocations } from '../../src/core/revocation/revocations.ts';
import { clientIds } from '../../src/dev/provider/defaults.ts';
import { listen, stop } from '../../tools/shared/network.js';
import type { CallInit } from '../support/call-over-tls.ts';
import { idpOptions, useLocalIdp } from '../support/local-idp.ts';

const { audience, customClaim } = idpOptions;
const { idp, call } = await useLocalIdp();

/** A browser of one window: keeps cookies by path, follows no redirect by itself. */
function openBrowser() {
  const jar = new Map<string, { readonly path: string; readonly value: string }>();
  return async (url: URL, init: CallInit = {}) => {
    const cookies = [...jar].filter(([, { path }]) => url.pathname.startsWith(path));
    const cookie = cookies.map(([name, { value }]) => `${name}=${value}`).join('; ');
    const response = await call(url, { ...init, headers: { accept: 'text/html', ...init.headers, cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      jar.set(name, { value, path: /;\s*path=([^;]*)/i.exec(line)?.[1] ?? '/' });
    }
    const location = response.headers.get('location');
    return { response, location: location === null ? undefined : new URL(location, url) };
  };
}

/** An application on a loopback port that waits for its callback. */
async function startApplication() {
  let receive = (_url: URL) => {};
  const called = new Promise<URL>((resolve) => {
    receive = resolve;
  });
  const server = createServer((request, response) => {
    receive(new URL(request.url ?? '', redirectUri));
    response.end('signed in');
  });
  const redirectUri = `http://127.0.0.1:${await listen(server)}/callback`;
  return { redirectUri, called, close: () => stop(server) };
}

const discover = () =>
  client.discovery(new URL(idp.issuer), clientIds.app, undefined, client.None(), {
    [client.customFetch]: (url, { method, headers, body }) => call(url, { method, headers, body }),
  });

async function beginSignIn(parameters: Readonly<Record<string, string>> = {}) {
  const config = await discover();
  const verifier = client.randomPKCECodeVerifier();
  const state = client.randomState();
  const application = await startApplication();
  const url = client.buildAuthorizationUrl(config, {
    redirect_uri: application.redirectUri,
    scope: 'openid email read:messages notes:read',
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state,
    ...parameters,
  });
  const browse = openBrowser();
  const started = await browse(url);
  /** Exchanges the code for tokens. */
  const finish = async (options?: client.AuthorizationCodeGrantOptions) => {
    const checks = { pkceCodeVerifier: verifier, expectedState: state };
    const tokens = await client.authorizationCodeGrant(config, await application.called, checks, undefined, options);
    await application.close();
    return tokens;
  };
  return { config, application, browse, started, interaction: started.location ?? new URL(idp.issuer), finish };
}

/** Follows redirects to the application and calls it back. */
async function follow(browse: ReturnType<typeof openBrowser>, from: URL | undefined): Promise<void> {
  let next = from;
  while (next !== undefined && next.protocol === 'https:') next = (await browse(next)).location;
  if (next !== undefined) await fetch(next);
}

test.each(['Bearer', 'DPoP'])(
  'authorization code with PKCE, one click, %s → access token of the demo user',
  async (scheme) => {
    const { config, browse, interaction, finish } = await beginSignIn();
    expect(interaction.pathname).toMatch(/^\/interaction\//);
    const shown = await browse(interaction);
    expect(shown.response.status).toBe(200);
    expect(shown.response.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(await shown.response.text()).toMatch(/development only[\s\S]*<form method="post"><button/);
    const { origin } = interaction;
    const clicked = await browse(interaction, { method: 'POST', headers: { origin } });
    expect(clicked.response.status).toBe(303);
    await follow(browse, clicked.location);

    const keyPair = await client.randomDPoPKeyPair('ES256');
    const DPoP = scheme === 'DPoP' ? client.getDPoPHandle(config, keyPair) : undefined;
    const tokens = await finish(DPoP === undefined ? {} : { DPoP });
    expect(tokens.claims()?.sub).toBe('demo-user');
    const keys = (await (await call(`${idp.issuer}.well-known/jwks.json`)).json()) as JSONWebKeySet; // jose checks it
    const { payload } = await jwtVerify(tokens.access_token, createLocalJWKSet(keys), {
      issuer: idp.issuer,
      audience,
      algorithms: ['RS256'],
      typ: 'at+jwt',
    });
    expect(payload).toMatchObject({
      sub: 'demo-user',
      client_id: clientIds.app,
      scope: 'read:messages notes:read',
      email: 'demo@portcullis.example',
      permissions: ['read:messages', 'write:messages'],
      [customClaim]: expect.any(String),
    });
    const jkt = await calculateJwkThumbprint(await exportJWK(keyPair.publicKey));
    expect(payload['cnf']).toEqual(DPoP === undefined ? undefined : { jkt });
  },
);

test('end of the session at the provider → logout token over back channel; the access token, and a refreshed one, get revoked_token', async () => {
  const revocations = createRevocations();
  const ca = readFileSync(idp.certificateFile, 'utf8');
  const server = createResourceServer({ issuer: idp.issuer, audience, ca, revocations });
  const receive = createBackchannelLogout(server, { clientIds: [clientIds.app] });
  const service = createServer((request, response) => receive(request, response, () => response.writeHead(404).end()));
  await idp.announceService({ service: `http://127.0.0.1:${await listen(service)}` });
  const { config, browse, interaction, finish } = await beginSignIn();
  const clicked = await browse(interaction, { method: 'POST', headers: { origin: interaction.origin } });
  await follow(browse, clicked.location);
  const tokens = await finish();
  const refreshed = await client.refreshTokenGrant(config, tokens.refresh_token ?? '');
  const decide = (token: string) =>
    server.authorize(new Request('https://api.test/', { headers: { authorization: `Bearer ${token}` } })).then(
      ({ claims }) => claims['sid'],
      ({ reason }: AccessError) => reason,
    );
  const sid = await decide(tokens.access_token);
  expect(sid).toMatch(/^[\w-]+$/);
  expect(await decide(refreshed.access_token)).toBe(sid);
  const asked = await (await browse(new URL('session/end', idp.issuer))).response.text();
  const xsrf = /name="xsrf" value="([^"]+)"/.exec(asked)?.[1] ?? '';
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const body = `xsrf=${xsrf}&logout=yes`;
  await browse(new URL('session/end/confirm', idp.issuer), { method: 'POST', headers, body });
  await expect.poll(() => decide(tokens.access_token), { timeout: 5000 }).toBe('revoked_token');
  expect(await decide(refreshed.access_token)).toBe('revoked_token');
  server.close();
  service.close();
});

test('without PKCE → back to the application with invalid_request', async () => {
  const { application, browse, started } = await beginSignIn({ code_challenge: '', code_challenge_method: '' });
  await follow(browse, started.location);
  expect((await application.called).searchParams.get('error')).toBe('invalid_request');
  await application.close();
});

test('redirect uri that is not on this machine → error in plain text, no redirect', async () => {
  const { application, started } = await beginSignIn({ redirect_uri: 'https://attacker.example/callback' });
  await application.close();
  expect(started.location).toBeUndefined();
  expect(started.response.status).toBe(400);
  expect(started.response.headers.get('content-type')).toMatch(/^text\/plain/);
  expect(await started.response.text()).toMatch(/^invalid_redirect_uri: /);
});

test('click from a foreign page → 403, and the sign-in is still open', async () => {
  const { application, browse, interaction } = await beginSignIn();
  await application.close();
  for (const origin of ['https://attacker.example', 'https://localhost:1', 'null']) {
    const { response, location } = await browse(interaction, { method: 'POST', headers: { origin } });
    expect([response.status, location]).toEqual([403, undefined]);
  }
  expect((await browse(interaction)).response.status).toBe(200);
});

test('click that names no origin → counts, for it comes from no browser', async () => {
  const { application, browse, interaction } = await beginSignIn();
  const { location } = await browse(interaction, { method: 'POST' });
  await follow(browse, location);
  expect((await application.called).searchParams.has('code')).toBe(true);
  await application.close();
});

test.each(['GET', 'POST'])('%s of a sign-in without its cookie → 400, start again', async (method) => {
  const { application, interaction } = await beginSignIn();
  await application.close();
  const { response } = await openBrowser()(interaction, { method });
  expect(response.status).toBe(400);
  expect(await response.text()).toContain('Start again');
});

test('openid alone → ID token of the demo user, and an access token', async () => {
  const { browse, interaction, finish } = await beginSignIn({ scope: 'openid email' });
  await follow(browse, (await browse(interaction, { method: 'POST' })).location);
  const tokens = await finish();
  expect(tokens.claims()).toMatchObject({ sub: 'demo-user', iss: idp.issuer });
});
