import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDpopClient } from '../support/dpop-client.ts';
import { type OpenedGate, openGate } from '../support/gate-process.ts';
import { send } from '../support/http-client.ts';
import { type OpenedService, openService } from '../support/open-service.ts';
import { needs } from '../support/programs.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { useTestProvider } from '../support/test-provider.ts';

const provider = await useTestProvider();
const path = '/api/private';
const htu = `http://api.example${path}`;

describe('gates and the service behind them, with one Redis', { ...needs('redis-server') }, () => {
  let redis: TestRedis;
  let gates: readonly OpenedGate[] = [];
  let service: OpenedService;
  let token: string;
  const client = createDpopClient();

  beforeAll(async () => {
    redis = await startTestRedis();
    const { issuer, audience } = provider;
    const rules = { issuers: { staff: { issuer, audience } }, rules: [{ id: 'all', path: '/**', dpop: 'required' }] };
    const shared = { REPLAY_STORE: redis.url, REPLAY_TIMEOUT: '5000' };
    gates = await Promise.all([openGate(provider, rules, shared), openGate(provider, rules, shared)]);
    service = await openService({
      environment: {
        ...{ IDP_DOMAIN: provider.domain, IDP_AUDIENCE: audience, NODE_EXTRA_CA_CERTS: provider.caFile },
        ...shared,
      },
    });
    token = await provider.sign({ cnf: { jkt: client.jkt } });
    // Until each has its connection to Redis.
    for (const ask of [...gates.map((gate) => askGate(gate)), askService]) {
      while ((await ask(prove())) !== 200) await sleep(50);
    }
  });
  afterAll(async () => {
    client.close();
    await Promise.all([...gates, service].map((each) => each?.stop()));
    await redis?.stop();
  });

  const prove = (): readonly string[] => [
    ...['Authorization', `DPoP ${token}`],
    ...['DPoP', client.prove(token, { url: htu })],
  ];
  const askGate =
    (gate: OpenedGate | undefined) =>
    async (headers: readonly string[]): Promise<number | undefined> =>
      (await gate?.ask({ path, proto: 'http', headers }))?.status;
  const askService = async (headers: readonly string[]): Promise<number> =>
    (await send(service.url, path, { headers: ['Host', 'api.example', ...headers] })).status;

  it('one proof → accepted once by the gate and once by the service, in any order', async () => {
    const [one] = gates;
    const inOrder = prove();
    expect([await askGate(one)(inOrder), await askService(inOrder)]).toEqual([200, 200]);
    expect([await askGate(one)(inOrder), await askService(inOrder)]).toEqual([401, 401]);
    const reversed = prove();
    expect([await askService(reversed), await askGate(one)(reversed)]).toEqual([200, 200]);
  });

  it('two instances of the gate → share: a proof that one has seen is a replay for the other', async () => {
    const [one, two] = gates;
    const headers = prove();
    expect([await askGate(one)(headers), await askGate(two)(headers)]).toEqual([200, 401]);
    expect(await askService(headers)).toBe(200);
  });
});
