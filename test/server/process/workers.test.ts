import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, openRaw, readStatuses, send } from '../../support/http-client.ts';
import { findChildren, isGone } from '../../support/processes.ts';
import { hashToken, makeProofKey, mintProof, thumbprintOf } from '../../support/proofs.ts';
import type { ServiceProcess } from '../../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../../support/test-provider.ts';
import {
  bearer,
  findLine,
  findVariant,
  startInVain,
  startVariant,
  type VariantOnTheWire,
  variants,
} from '../../support/variant-service.ts';

let provider: TestProvider;
/** Two workers of each variant, for all tests that leave them alive. */
const services = new Map<string, ServiceProcess>();

beforeAll(async () => {
  provider = await startTestProvider();
  for (const variant of variants) services.set(variant.name, await startTwo(variant));
});
afterAll(async () => {
  for (const service of services.values()) await service.stop();
  await provider.close();
});

function findService(name: 'a' | 'b'): ServiceProcess {
  const service = services.get(name);
  if (service === undefined) throw new Error('There is no such service.');
  return service;
}

/** Starts a variant with two workers and waits until both can judge tokens. */
async function startTwo(variant: VariantOnTheWire): Promise<ServiceProcess> {
  const service = await startVariant(variant, provider, { WORKERS: '2' });
  await until(async () => (await readiness(service)).body.includes('2 of 2 ready'));
  return service;
}

const readiness = ({ adminUrl = '' }: ServiceProcess): Promise<Answer> => send(adminUrl, '/readyz');

/** Asks again until it holds; the test's own timeout ends it otherwise. */
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(50);
}

/** The worker that answered: ids of one process begin alike. */
const workerOf = (id: unknown): string => String(id).split('-')[0] ?? '';

describe.each(variants)('variant $name with two workers', ({ name }) => {
  it('many connections → both serve, and one log has the lines of both', async () => {
    const service = findService(name);
    const answers = await Promise.all(Array.from({ length: 40 }, () => send(service.url, '/api/private')));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
    const ids = answers.map(({ headers }) => headers.get('x-request-id'));
    expect(new Set(ids).size).toBe(40);
    expect(new Set(ids.map(workerOf)).size).toBe(2);
    for (const answer of answers) expect((await findLine(service, answer))['reason']).toBe('missing_credentials');
  });

  it('/metrics → the counts of both in one', async () => {
    const service = findService(name);
    const count = async (): Promise<number> => {
      const { body } = await send(service.adminUrl ?? '', '/metrics');
      const families = [...body.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name);
      expect(new Set(families).size).toBe(families.length);
      return Number(
        /^portcullis_requests_total\{route="\/api\/public",status="200",scheme="none",issuer=""\} (\d+)$/m.exec(
          body,
        )?.[1] ?? 0,
      );
    };
    const before = await count();
    await Promise.all(Array.from({ length: 30 }, () => send(service.url, '/api/public')));
    expect(await count()).toBe(before + 30);
  });

  it('valid token → 200 on both', async () => {
    const service = findService(name);
    const headers = bearer(await provider.sign());
    const answers = await Promise.all(Array.from({ length: 10 }, () => send(service.url, '/api/private', { headers })));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  });
});

describe('a proof sent many times', () => {
  const key = makeProofKey();
  const path = '/api/private';

  /** On a machine too busy for the primary to answer in time, a refusal is 503 instead of 401 (docs/behaviour.md §5). */
  function tally(answers: readonly Answer[]): { readonly accepted: number; readonly refused: number } {
    const count = (...statuses: readonly number[]): number =>
      answers.filter(({ status }) => statuses.includes(status)).length;
    return { accepted: count(200), refused: count(401, 503) };
  }

  it('to two workers that share the memory of one process → accepted once', async () => {
    const service = findService('a');
    const token = await provider.sign({ cnf: { jkt: thumbprintOf(key.jwk) } });
    const makeHeaders = (): readonly string[] => {
      const iat = Math.floor(Date.now() / 1000);
      const claims = { jti: randomUUID(), htm: 'GET', htu: `${service.url}${path}`, iat, ath: hashToken(token) };
      return ['Authorization', `DPoP ${token}`, 'DPoP', mintProof(claims, { key })];
    };
    const burst = (headers: readonly string[]) =>
      Promise.all(Array.from({ length: 40 }, () => send(service.url, path, { headers })));

    let headers = makeHeaders();
    while (tally([await send(service.url, path, { headers })]).accepted === 0) headers = makeHeaders();
    const replays = await burst(headers);
    expect(tally(replays)).toEqual({ accepted: 0, refused: 40 });
    const lines = await Promise.all(replays.map((answer) => findLine(service, answer)));
    expect(lines.map((line) => line['reason'])).toContain('proof_replayed');
    expect(new Set(lines.map((line) => workerOf(line['id']))).size).toBe(2);
    // All at once, and none before.
    for (let round = 0; round < 3; round++) {
      const { accepted, refused } = tally(await burst(makeHeaders()));
      expect(accepted).toBeLessThanOrEqual(1);
      expect(accepted + refused).toBe(40);
    }
  });
});

describe('the end of a worker', { timeout: 40_000 }, () => {
  it('killed → said in the log, started again, requests go on meanwhile', async () => {
    const service = findService('a');
    const [victim = 0, ...others] = findChildren(service.pid);
    expect(others).toHaveLength(1);
    process.kill(victim, 'SIGKILL');
    const line = await service.findLog(({ event }) => event === 'worker_exited');
    expect(line).toMatchObject({ level: 'error', signal: 'SIGKILL' });
    const token = await provider.sign();
    for (let i = 0; i < 10; i++) {
      expect((await send(service.url, '/api/private', { headers: bearer(token) })).status).toBe(200);
    }
    await until(async () => (await readiness(service)).body.includes('2 of 2 ready'));
    const children = findChildren(service.pid);
    expect(children).toHaveLength(2);
    expect(children).not.toContain(victim);
    expect(children).toEqual(expect.arrayContaining(others));
  });

  it('both killed, and SIGTERM before they are back → exit 0 without them', async () => {
    const service = await startTwo(findVariant('a'));
    for (const pid of findChildren(service.pid)) process.kill(pid, 'SIGKILL');
    await until(() => service.logs.filter(({ event }) => event === 'worker_exited').length === 2);
    expect(await service.stop()).toBe(0);
    expect(service.logs.filter(({ event }) => event === 'worker_exited')).toHaveLength(2);
  });

  it('primary killed → the workers end too', async () => {
    const service = await startTwo(findVariant('a'));
    const children = findChildren(service.pid);
    expect(children).toHaveLength(2);
    await service.kill();
    await until(() => children.every(isGone));
  });
});

describe('the end of all', { timeout: 40_000 }, () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('%s → every worker finishes what it has, exit 0', async (name) => {
    const service = await startTwo(findVariant('a'));
    const children = findChildren(service.pid);
    const request = 'GET /api/public HTTP/1.1\r\nHost: api.example.test\r\n';
    const held = await Promise.all(
      [0, 1].map(async () => {
        const connection = openRaw(service.port);
        connection.write(`${request}\r\n${request}`);
        await connection.receive(/"Public endpoint/);
        return connection;
      }),
    );
    service.signal(name);
    await until(() => service.logs.filter(({ event }) => event === 'shutting_down').length === 2);
    await until(async () =>
      send(service.url, '/api/public').then(
        () => false,
        () => true,
      ),
    );
    expect(await readiness(service)).toMatchObject({ status: 503, json: { checks: { shutdown: 'in progress' } } });
    for (const connection of held) connection.write('\r\n');
    for (const { closed } of held) expect(readStatuses(await closed)).toEqual([200, 200]);
    expect(await service.ended).toEqual({ code: 0, signal: null });
    expect(children.filter((pid) => !isGone(pid))).toEqual([]);
    expect(service.stderr).toBe('');
  });

  it('a second SIGTERM → exits at once, and the workers end', async () => {
    const service = await startTwo(findVariant('a'));
    const children = findChildren(service.pid);
    const held = openRaw(service.port);
    const request = 'GET /api/public HTTP/1.1\r\nHost: api.example.test\r\n';
    held.write(`${request}\r\n${request}`);
    await held.receive(/"Public endpoint/);
    service.signal('SIGTERM');
    await service.findLog(({ event }) => event === 'shutting_down');
    service.signal('SIGTERM');
    expect(await service.ended).toEqual({ code: 143, signal: null });
    held.destroy();
    await until(() => children.every(isGone));
  });
});

describe('workers that cannot start', { timeout: 40_000 }, () => {
  it('variant B, provider down → exit 69 with the reason', async () => {
    const dead = await startTestProvider();
    await dead.down();
    const { end, stderr } = await startInVain(startVariant(findVariant('b'), dead, { WORKERS: '2' }));
    await dead.close();
    expect(end).toEqual({ code: 69, signal: null });
    expect(stderr).toMatch(/^portcullis: the keys of .* could not be loaded, .*: The identity provider .*\.$/m);
  });

  it.each(['PORT', 'ADMIN_PORT'])('%s is taken → exit 69 with the reason', async (setting) => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('It does not listen on TCP.');
    const environment = { WORKERS: '2', [setting]: String(address.port) };
    const { end, stderr } = await startInVain(startVariant(findVariant('a'), provider, environment));
    server.close();
    expect(end).toEqual({ code: 69, signal: null });
    expect(stderr).toMatch(
      new RegExp(`^portcullis: cannot listen on 127\\.0\\.0\\.1:${address.port}; .*${setting}`, 'm'),
    );
  });
});
