import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { send } from '../support/http-client.ts';
import { type ServiceProcess, ServiceStartError, startService } from '../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../support/test-provider.ts';

let provider: TestProvider;
let service: ServiceProcess;
const environment = (variant: 'a' | 'b') => ({
  VARIANT: variant,
  ISSUER: provider.issuer,
  [variant === 'a' ? 'IDP_AUDIENCE' : 'IdpApiIdentifier']: provider.audience,
  NODE_EXTRA_CA_CERTS: provider.caFile,
});
const call = (token: string, path = '/api/private') =>
  send(service.url, path, { headers: ['Authorization', `Bearer ${token}`] });

beforeAll(async () => {
  provider = await startTestProvider({ path: '/realms/main' });
});
afterAll(() => provider.close());

describe.each(['a', 'b'] as const)('variant %s with ISSUER, which has a path and no slash at its end', (variant) => {
  beforeAll(async () => {
    service = await startService({ environment: environment(variant) });
  });
  afterAll(() => service.stop());

  it('its token → 200', async () => {
    expect((await call(await provider.sign())).status).toBe(200);
  });

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

it('with a domain as well → exit 78, which names both', async () => {
  const started = startService({ environment: { ...environment('a'), IDP_DOMAIN: provider.domain } });
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
