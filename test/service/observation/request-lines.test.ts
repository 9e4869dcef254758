import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { send } from '../../support/http-client.ts';
import type { LogLine, ServiceProcess } from '../../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../../support/test-provider.ts';
import { bearer, findVariant, startVariant } from '../../support/variant-service.ts';

let provider: TestProvider;
const services: ServiceProcess[] = [];

beforeAll(async () => {
  provider = await startTestProvider();
});
afterAll(async () => {
  for (const service of services) await service.stop();
  await provider.close();
});

async function start(environment: Readonly<Record<string, string>> = {}): Promise<ServiceProcess> {
  const service = await startVariant(findVariant('a'), provider, environment);
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
      request_id: 'call-7:a.b',
      trace_id: trace,
      client_ip: '203.0.113.5',
      route: '/api/private',
      status: 401,
      reason: 'missing_credentials',
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

  it('LOG_GRANTS=none → only refused calls; a number → one call in so many', async () => {
    const none = await start({ LOG_GRANTS: 'none' });
    await send(none.url, '/api/public');
    await send(none.url, '/api/private');
    expect(await none.findLog(isRequest)).toMatchObject({ status: 401 });
    const some = await start({ LOG_GRANTS: '3' });
    for (let i = 0; i < 6; i++) await send(some.url, '/api/public');
    await send(some.url, '/api/private');
    await some.findLog((line) => isRequest(line) && line['status'] === 401);
    expect(some.logs.filter((line) => isRequest(line) && line['status'] === 200)).toHaveLength(2);
  });
});
