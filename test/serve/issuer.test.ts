import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { findFreePort } from '../../tools/shared/network.js';
import { namesOf, runDoctor } from '../cli/doctor/run-doctor.ts';
import { runCommand } from '../support/command-runs.ts';
import { send } from '../support/http-client.ts';
import { type OpenedService, openService } from '../support/open-service.ts';
import { ServiceStartError } from '../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../support/test-provider.ts';

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

  it('the library with the issuer of AD FS and jwksUri → admitted, without insecure', async () => {
    const { ISSUER: issuer, JWKS_URI: jwksUri } = adFs();
    const { audience, ca } = provider;
    for (const place of [{ issuer, jwksUri }, { issuers: [{ issuer, jwksUri }] }]) {
      const server = createResourceServer({ ...place, audience, ca });
      const headers = new Headers({ authorization: `Bearer ${await sign()}` });
      const { claims } = await server.authorize({ method: 'GET', url: 'https://api.example.test/', headers });
      server.close();
      expect(claims.iss).toBe(issuer);
    }
  });
});

it('with a domain as well → exit 78, which names both', async () => {
  const started = openService({ environment: { ...environment('a'), IDP_DOMAIN: provider.domain } });
  const error = await started.then(
    (unexpected) => unexpected.stop(),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ServiceStartError);
  expect(error).toMatchObject({
    end: { code: 78 },
    stderr: expect.stringMatching(/IDP_DOMAIN and ISSUER are both set/),
  });
});
