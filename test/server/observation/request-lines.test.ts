import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { docsUrl } from '../../../src/core/failures.ts';
import { send } from '../../support/http-client.ts';
import type { OpenedService } from '../../support/open-service.ts';
import type { LogLine } from '../../support/service-process.ts';
import { useTestProvider } from '../../support/test-provider.ts';
import { bearer, findVariant, openVariant } from '../../support/variant-service.ts';

const provider = await useTestProvider();
const services: OpenedService[] = [];

afterAll(async () => {
  for (const service of services) await service.stop();
});

async function start(environment: Readonly<Record<string, string>> = {}): Promise<OpenedService> {
  const service = await openVariant(findVariant('a'), provider, environment);
  services.push(service);
  return service;
}

const isRequest = (line: LogLine) => line.event === 'request';

describe('the line of a request', () => {
  it('has the ids of the caller, its address, and nothing else of its input', async () => {
    const service = await start({ TRUST_PROXY: '127.0.0.1' });
    const trace = '0af7651916cd43dd8448eb211c80319c';
    const headers = [
      ...['X-Request-Id', 'call-7:a.b'],
      ...['traceparent', `00-${trace}-b7ad6b7169203331-01`],
      ...['X-Forwarded-For', '203.0.113.5'],
    ];
    await send(service.url, '/api/private', { headers });
    expect(await service.findLog(isRequest)).toMatchObject({
      ...{ request_id: 'call-7:a.b', trace_id: trace, client_ip: '203.0.113.5' },
      ...{ route: '/api/private', status: 401, reason: 'missing_credentials' },
    });
  });

  it.each(['"quoted"', 'white space', 'x'.repeat(129), 'new\tline', 'ü'])(
    'an id like %j → is not repeated',
    async (id) => {
      const service = services[0] ?? (await start());
      const from = service.logs.length;
      await send(service.url, '/api/public', { headers: ['X-Request-Id', Buffer.from(id).toString('latin1')] });
      const line = await service.findLog((each) => isRequest(each) && service.logs.indexOf(each) >= from);
      expect(line['request_id']).toBeUndefined();
    },
  );

  it('LOG_IDENTITY=plain → whose call it was; off by default', async () => {
    const told = await start({ LOG_IDENTITY: 'plain' });
    const token = await provider.sign({ sub: 'auth0|alice', client_id: 'app' });
    await send(told.url, '/api/private', { headers: bearer(token) });
    expect(await told.findLog(isRequest)).toMatchObject({ sub: 'auth0|alice', client_id: 'app', status: 200 });
    const silent = await start();
    await send(silent.url, '/api/private', { headers: bearer(token) });
    expect(JSON.stringify(await silent.findLog(isRequest))).not.toContain('alice');
  });

  it('LOG_IDENTITY=hashed → the same hash for the same owner, and no name', async () => {
    const service = await start({ LOG_IDENTITY: 'hashed', LOG_IDENTITY_SECRET: 's'.repeat(32) });
    for (const sub of ['alice', 'alice', 'bob']) {
      await send(service.url, '/api/private', { headers: bearer(await provider.sign({ sub })) });
    }
    await service.findLog((line) => service.logs.filter(isRequest).indexOf(line) === 2);
    const [one, again, other] = service.logs.filter(isRequest).map((line) => line['sub']);
    expect(one).toMatch(/^[\w-]{22}$/);
    expect(again).toBe(one);
    expect(other).not.toBe(one);
  });

  it('LOG_GRANTS=none → only refused requests', async () => {
    const none = await start({ LOG_GRANTS: 'none' });
    await send(none.url, '/api/public');
    await send(none.url, '/api/private');
    expect(await none.findLog(isRequest)).toMatchObject({ status: 401 });
  });
});

/** The line of one call to `/api/private-scoped`, which needs `read:messages`. */
async function refusedLine(service: OpenedService, headers: readonly string[]): Promise<LogLine> {
  const from = service.logs.length;
  await send(service.url, '/api/private-scoped', { headers });
  return service.findLog((each) => isRequest(each) && service.logs.indexOf(each) >= from);
}

describe('the line of a refused request', () => {
  let service: OpenedService;
  const now = () => Math.floor(Date.now() / 1000);

  beforeAll(async () => {
    service = await start();
  });

  const cases: readonly (readonly [reason: string, claims: () => Record<string, unknown>, facts: () => object])[] = [
    [
      'invalid_issuer',
      () => ({ iss: 'https://other.test/' }),
      () => ({ expected: [provider.issuer], received: 'https://other.test/' }),
    ],
    [
      'insufficient_scope',
      () => ({ scope: 'openid profile' }),
      () => ({ expected: ['read:messages'], received: ['openid', 'profile'] }),
    ],
  ];

  it.each(cases)(
    '%s → what was expected and received, the key, and where to read on',
    async (reason, claims, facts) => {
      const person = { sub: 'auth0|alice', client_id: 'app', email: 'alice@mail.test' };
      const token = await provider.sign({ ...person, ...claims() });
      const line = await refusedLine(service, bearer(token));
      expect(line).toMatchObject({ reason, docs: `${docsUrl}refusals.md#${reason}`, kid: provider.kid, ...facts() });
      const text = JSON.stringify(line);
      for (const secret of [...token.split('.'), 'alice', '"app"']) expect(text).not.toContain(secret);
    },
  );

  it('no token → only where to read on', async () => {
    const line = await refusedLine(service, []);
    expect(line).toMatchObject({ reason: 'missing_credentials', docs: `${docsUrl}refusals.md#missing_credentials` });
    for (const name of ['expected', 'received', 'kid']) expect(line).not.toHaveProperty(name);
  });

  it('many values → the first ones and their number; a token in a claim → withheld', async () => {
    const many = Array.from({ length: 40 }, (_, index) => `urn:${index}`);
    const listed = await refusedLine(service, bearer(await provider.sign({ aud: many })));
    expect(listed['received']).toEqual([...many.slice(0, 10), '… (40 in all)']);
    const other = await provider.sign({});
    const holding = await refusedLine(service, bearer(await provider.sign({ aud: other })));
    expect(holding).toMatchObject({ reason: 'invalid_audience', received: '(withheld: it looks like a token)' });
    expect(JSON.stringify(holding)).not.toContain(other.slice(0, 20));
  });

  it('LOG_IDENTITY=plain → the client of a verified token only', async () => {
    const told = await start({ LOG_IDENTITY: 'plain' });
    const expired = await refusedLine(told, bearer(await provider.sign({ client_id: 'app', exp: now() - 600 })));
    expect(expired).toMatchObject({ client_id: 'app', reason: 'expired' });
    const forged = await provider.sign({ client_id: 'mallory', iss: 'https://other.test/' });
    expect(JSON.stringify(await refusedLine(told, bearer(forged)))).not.toContain('mallory');
  });

  it('the refusals of a verified token are counted with its issuer, all others without', async () => {
    await refusedLine(service, bearer(await provider.sign({ scope: 'openid' })));
    await refusedLine(service, bearer(await provider.sign({ iss: 'https://other.test/' })));
    const { body } = await send(service.adminUrl ?? '', '/metrics');
    const text = body.toString();
    expect(text).toContain(`portcullis_refusals_total{reason="insufficient_scope",issuer="${provider.issuer}"}`);
    expect(text).not.toContain('other.test');
  });
});
