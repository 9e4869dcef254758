import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { signCompact } from '../../src/core/jose/sign.ts';
import { findFreePort } from '../../tools/shared/network.js';
import { namesOf, runDoctor } from '../cli/doctor/run-doctor.ts';
import { runCommand } from '../support/command-runs.ts';
import { send } from '../support/http-client.ts';
import { type OpenedService, openService } from '../support/open-service.ts';
import { openRawServers, respondWith } from '../support/raw-provider.ts';
import { startTestProvider, type TestProvider } from '../support/test-provider.ts';
import { takeTrustedCertificates } from '../support/tls.ts';

let provider: TestProvider;
let service: OpenedService;
const environment = (variant: 'a' | 'b') => ({
  VARIANT: variant,
  ISSUER: provider.issuer,
  [variant === 'a' ? 'IDP_AUDIENCE' : 'IdpApiIdentifier']: provider.audience,
  NODE_EXTRA_CA_CERTS: provider.caFile,
});
const call = (token: string, path = '/api/private') =>
  send(service.url, path, { headers: ['Authorization', `Bearer ${token}`] });

const forwarded = [
  ...['X-Forwarded-Method', 'GET', 'X-Forwarded-Proto', 'https'],
  ...['X-Forwarded-Host', 'api.example', 'X-Forwarded-Uri', '/'],
];

beforeAll(async () => {
  provider = await startTestProvider({ path: '/realms/main' });
});
afterAll(() => provider.close());

describe.each(['a', 'b'] as const)('variant %s with ISSUER, which has a path and no slash at its end', (variant) => {
  beforeAll(async () => {
    service = await openService({ environment: environment(variant) });
  });
  afterAll(() => service.stop());

  it('its token → 200', async () => expect((await call(await provider.sign())).status).toBe(200));

  it.each([
    ['a slash at the end', () => `${provider.issuer}/`],
    ['without the path', () => `https://${provider.domain}/`],
    ['another path', () => `https://${provider.domain}/realms/other`],
    ['another case', () => provider.issuer.replace('main', 'Main')],
  ])('a token whose iss has %s → 401 for its issuer', async (_name, iss) => {
    const { status, body } = await call(await provider.sign({ iss: iss() }));
    expect(status).toBe(401);
    expect(body).toContain('issuer');
  });

  it('the metadata name it', async () => {
    const { json } = await send(service.url, '/.well-known/oauth-protected-resource');
    expect(json).toMatchObject({ authorization_servers: [provider.issuer] });
  });
});

describe('JWKS_URI', () => {
  const adFs = () => ({
    ISSUER: 'http://adfs.example.test/adfs/services/trust',
    JWKS_URI: provider.jwksUri,
    IDP_AUDIENCE: provider.audience,
    NODE_EXTRA_CA_CERTS: provider.caFile,
  });
  const sign = () => provider.sign({ iss: adFs().ISSUER });

  it.each([
    ['serve', {}],
    ['gate', {}],
    ['serve', { VARIANT: 'b', IDP_AUDIENCE: undefined, IdpApiIdentifier: 'https://api.example.test/' }],
  ] as const)(
    '%s with the issuer of AD FS, which is http, and %j → 200, and no metadata was requested',
    async (command, more) => {
      const before = provider.requests('discovery');
      const own = await openService({ command, environment: { ...adFs(), ...more } });
      onTestFinished(async () => void (await own.stop()));
      if (command === 'gate') await own.findLog(({ event }) => event === 'keys_fetched');
      const [path, headers] = command === 'gate' ? ['/forward-auth', forwarded] : ['/api/private', []];
      const { status } = await send(own.url, path, {
        headers: ['Authorization', `Bearer ${await sign()}`, ...headers],
      });
      expect(status).toBe(200);
      if (command === 'serve') {
        expect((await send(own.url, '/openapi.json')).body).not.toContain('openIdConnect');
      }
      expect(provider.requests('discovery')).toBe(before);
    },
  );

  it('explain → admitted; doctor → ok; neither requests the metadata', async () => {
    const before = provider.requests('discovery');
    const { stdout } = await runCommand(['explain', '--json'], adFs(), await sign());
    expect(JSON.parse(stdout)).toMatchObject({ verdict: 'admitted' });
    const { status, findings } = await runDoctor(['--only', 'provider,tls,clock,revocation'], {
      ...adFs(),
      ...{ LOGOUT_CLIENTS: 'app', LOGOUT_SUBJECT: 'true' },
    });
    expect([status, namesOf(findings)]).toEqual([0, []]);
    expect(provider.requests('discovery')).toBe(before);
  });

  it('an address where no provider is → doctor names JWKS_URI in the fix', async () => {
    const JWKS_URI = `https://localhost:${await findFreePort()}/keys`;
    const { findings } = await runDoctor(['--only', 'provider'], { ...adFs(), JWKS_URI });
    expect(findings[0]).toMatchObject({ name: 'provider_unreachable', fix: expect.stringContaining('JWKS_URI') });
  });

  it('the issuer of AD FS without it → exit 78 that names it', async () => {
    const started = openService({ environment: { ...adFs(), JWKS_URI: undefined } });
    await expect(started).rejects.toMatchObject({
      end: { code: 78 },
      stderr: expect.stringMatching(/ISSUER.*JWKS_URI/),
    });
  });

  it.each([
    ['jwt() of better-auth', '/api/auth/jwks', 'EdDSA', 'Ed25519'],
    ['metadata of RFC 8414 only', '/oauth2/keys', 'Ed25519', 'EdDSA'],
  ])('%s, directly and through a proxy → 200, and only %s was requested', async (_what, path, alg, enabled) => {
    const raw = openRawServers();
    onTestFinished(raw.close);
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    const keys = JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), alg, kid: 'k' }] });
    const heads: (string | undefined)[] = [];
    const respond = (head: string) => {
      heads.push(head.split(' ')[1]);
      return respondWith(keys);
    };
    const port = await raw.startProvider(respond, { certificate: takeTrustedCertificates() });
    const ISSUER = `https://localhost:${port}`;
    const proxied: number[] = [];
    const statusOf = (target: number): number => {
      proxied.push(target);
      return 200;
    };
    const HTTPS_PROXY = `http://127.0.0.1:${await raw.startProxy(statusOf)}`;
    const iat = Math.floor(Date.now() / 1000);
    const claims = { iss: ISSUER, aud: ISSUER, sub: 'alice', iat, exp: iat + 900 };
    const token = signCompact({ alg, kid: 'k' }, claims, { alg, privateKey });
    for (const proxy of [{}, { HTTPS_PROXY }]) {
      const own = await openService({
        environment: { ISSUER, JWKS_URI: `${ISSUER}${path}`, IDP_AUDIENCE: ISSUER, ALGORITHMS: enabled, ...proxy },
      });
      onTestFinished(async () => void (await own.stop()));
      expect(await send(own.url, '/api/private', { headers: ['Authorization', `Bearer ${token}`] })).toMatchObject({
        status: 200,
      });
    }
    expect([heads, proxied]).toEqual([[path, path], [port]]);
  });
});

it('with a domain as well → exit 78, which names both', async () => {
  const started = openService({ environment: { ...environment('a'), IDP_DOMAIN: provider.domain } });
  const stderr = expect.stringMatching(/IDP_DOMAIN and ISSUER are both set/);
  await expect(started).rejects.toMatchObject({ end: { code: 78 }, stderr });
});
