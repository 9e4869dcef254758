import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LocalIdp, startLocalIdp } from '../../src/dev/provider/local-idp.ts';
import { send } from '../support/http-client.ts';
import { takeSigningKey } from '../support/rsa-keys.ts';
import type { ServiceProcess } from '../support/service-process.ts';
import { bearer, findLine, startVariant, variants } from '../support/variant-service.ts';

const audience = 'https://local-api.example.test/';
const customClaim = 'https://my.example.test/plan';
let folder: string;
let idp: LocalIdp;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-local-'));
  idp = await startLocalIdp({
    makeKey: takeSigningKey,
    port: 0,
    audience,
    customClaim,
    cacheFolder: folder,
    environment: {},
  });
});
afterAll(async () => {
  await idp.close();
  await rm(folder, { recursive: true, force: true });
});

describe.each(variants)('variant $name before the local provider', (variant) => {
  let service: ServiceProcess;
  const get = (path: string, token: string) => send(service.url, path, { headers: bearer(token) });

  beforeAll(async () => {
    const { domain, certificateFile } = idp;
    service = await startVariant(variant, { domain, audience, caFile: certificateFile }, { CUSTOM_CLAIM: customClaim });
  });
  afterAll(() => service.stop());

  it('its certificate in NODE_EXTRA_CA_CERTS → the keys are loaded', async () => {
    expect(await service.findLog(({ event }) => event === 'keys_fetched')).toMatchObject({ dropped: 0 });
    expect((await send(service.adminUrl ?? '', '/readyz')).status).toBe(200);
  });

  it('token without a scope → opens private, and scoped not', async () => {
    const token = await idp.token();
    expect((await get('/api/private', token)).status).toBe(200);
    const refused = await get('/api/private-scoped', token);
    expect(refused.status).toBe(variant.insufficientScopeStatus);
    expect((await findLine(service, refused))['reason']).toBe('insufficient_scope');
  });

  it('token with the scope → opens every endpoint', async () => {
    const token = await idp.token({ scope: 'read:messages' });
    for (const path of variant.protectedPaths) expect((await get(path, token)).status).toBe(200);
  });

  it.each([
    ['expired token', { validity: 'expired' }, 'expired'],
    ['token that is not valid yet', { validity: 'not-yet-valid' }, 'not_yet_valid'],
    ['token for another audience', { audience: 'https://other-api.example.test/' }, 'invalid_audience'],
    ['token of another issuer', { issuer: 'https://other-idp.example.test/' }, 'invalid_issuer'],
    ['token of a key that is not published', { key: 'unknown' }, 'unknown_kid'],
  ] as const)('%s → 401, and its reason in the log', async (_, order, reason) => {
    const token = await idp.token({ scope: 'read:messages', ...order });
    const answer = await get('/api/private', token);
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).toMatch(variant.name === 'b' ? /^Bearer$/ : /error="invalid_token"/);
    expect((await findLine(service, answer))['reason']).toBe(reason);
  });

  it('altered token → 401 invalid_signature', async () => {
    const token = await idp.token();
    const end = token.at(-20) === 'A' ? 'B' : 'A';
    const answer = await get('/api/private', `${token.slice(0, -20)}${end}${token.slice(-19)}`);
    expect(answer.status).toBe(401);
    expect((await findLine(service, answer))['reason']).toBe('invalid_signature');
  });

  it('any request → no token and no secret in the log', async () => {
    const token = await idp.token();
    await findLine(service, await get('/nowhere', token));
    const log = `${JSON.stringify(service.logs)}${service.stderr}`;
    expect(log).not.toContain(token);
    expect(log).not.toContain((await readFile(idp.clientSecretFile, 'utf8')).trim());
  });
});
