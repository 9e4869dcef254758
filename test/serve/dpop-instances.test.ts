import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, createDpopClient, type DpopClient } from '../support/dpop-client.ts';
import { needs } from '../support/programs.ts';
import { type ProxyServer, startProxy } from '../support/proxy-server.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { type ServiceProcess, startService } from '../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../support/test-provider.ts';
import { createTestCertificates } from '../support/tls.ts';

const proofCount = 1000;
const atOnce = 16;
/** Proofs made for one call, where an answer is 503: Redis has 250 ms (docs/behaviour.md §5), and the machine much else to do. */
const maxAttempts = 20;
/** Milliseconds; on a machine with much else to do. */
const timeout = 120_000;

describe('two instances, one Redis', { timeout, ...needs('redis-server', 'nginx') }, () => {
  let provider: TestProvider;
  let redis: TestRedis;
  let instances: readonly ServiceProcess[] = [];
  let edge: ProxyServer;
  let client: DpopClient;
  let bound: string;
  let free: string;

  beforeAll(async () => {
    const certificates = await createTestCertificates();
    provider = await startTestProvider();
    redis = await startTestRedis();
    client = createDpopClient({ ca: certificates.ca });
    [bound, free] = await Promise.all([provider.sign({ cnf: { jkt: client.jkt } }), provider.sign()]);
    const [one, two] = await Promise.all([startInstance(), startInstance()]);
    instances = [one, two];
    const upstreams = [`127.0.0.1:${one.port}`, `127.0.0.1:${two.port}`] as const;
    edge = await startProxy('nginx', { upstreams, prefix: '/gate', certificates });
    await until(async () => (await Promise.all(ways.straight().map(askAfresh))).every(({ status }) => status === 200));
  });

  afterAll(async () => {
    client?.close();
    await edge?.stop();
    await Promise.all(instances.map((instance) => instance.stop()));
    await Promise.all([provider?.close(), redis?.stop()]);
  });

  function startInstance(): Promise<ServiceProcess> {
    return startService({
      environment: {
        IDP_DOMAIN: provider.domain,
        IDP_AUDIENCE: provider.audience,
        NODE_EXTRA_CA_CERTS: provider.caFile,
        TRUST_PROXY: '127.0.0.1',
        REPLAY_STORE: redis.url,
      },
    });
  }

  /** Where a request is sent, and the URL that the instances are to see. */
  interface Target {
    readonly url: string;
    readonly htu: string;
    readonly headers: Readonly<Record<string, string>>;
  }

  /** Two targets that one proof is for. */
  const ways = {
    // Both are told the same name, as behind a balancer that passes it on.
    straight: (): readonly Target[] =>
      instances.map(({ url }) => ({
        url: `${url}/api/private`,
        htu: 'http://api.example/api/private',
        headers: { host: 'api.example' },
      })),
    nginx: (): readonly Target[] => {
      const url = `${edge.origin}/gate/api/private`;
      return [url, url].map((each) => ({ url: each, htu: each, headers: {} }));
    },
  };
  type Way = keyof typeof ways;

  const ask = ({ url, headers }: Target, credentials: Readonly<Record<string, string>>): Promise<Answer> =>
    client.call(url, { headers: { ...headers, ...credentials } });
  const askAfresh = (target: Target): Promise<Answer> => ask(target, client.headers(bound, { url: target.htu }));
  const askFreely = (target: Target): Promise<Answer> => ask(target, { authorization: `Bearer ${free}` });

  /** Sends one new proof to both targets of a way at once. */
  async function askBoth(way: Way): Promise<Pair> {
    const targets = ways[way]();
    const credentials = client.headers(bound, { url: targets[0]?.htu ?? '' });
    const answers = await Promise.all(targets.map((target) => ask(target, credentials)));
    return { way, credentials, answers };
  }

  /** Asks both until neither answer is 503; all that was answered, the judgement last. */
  async function askJudged(way: Way): Promise<readonly Pair[]> {
    const attempts = [await askBoth(way)];
    while (!attempts.some(isJudged) && attempts.length < maxAttempts) {
      await sleep(50);
      attempts.push(await askBoth(way));
    }
    return attempts;
  }

  const isJudged = ({ answers }: Pair): boolean => answers.every(({ status }) => status !== 503);

  interface Pair {
    readonly way: Way;
    readonly credentials: Readonly<Record<string, string>>;
    readonly answers: readonly Answer[];
  }

  /** Does something many times, so many at once; what came of it, in the order of the ends. */
  async function repeat<T>(count: number, act: (index: number) => Promise<T>): Promise<readonly T[]> {
    const results: T[] = [];
    let next = 0;
    const work = async (): Promise<void> => {
      while (next < count) results.push(await act(next++));
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    return results;
  }

  /** Polls for at most 5 s; whether it came true. */
  async function until(holds: () => Promise<boolean>): Promise<boolean> {
    for (const deadline = performance.now() + 5000; performance.now() < deadline; await sleep(20)) {
      if (await holds()) return true;
    }
    return false;
  }

  async function countServed({ adminUrl }: ServiceProcess): Promise<number> {
    const { body } = await client.call(`${adminUrl}/metrics`);
    return Number(
      /^portcullis_requests_total\{route="\/api\/private",status="200",scheme="DPoP",issuer="[^"]+"\} (\d+)$/m.exec(
        body,
      )?.[1] ?? 0,
    );
  }

  /** How many of the answers have each status, as text. */
  function tally(pairs: readonly Pair[]): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { answers } of pairs) {
      const statuses = answers.map(({ status }) => status).sort((a, b) => a - b);
      counts[statuses.join(' ')] = (counts[statuses.join(' ')] ?? 0) + 1;
    }
    return counts;
  }

  it(`${proofCount} proofs, each sent to both instances at once → exactly one 200 each`, async () => {
    const before = await Promise.all(instances.map(countServed));
    const pairs = (await repeat(proofCount, () => askJudged('straight'))).flat();
    expect(tally(pairs.filter(isJudged))).toEqual({ '200 401': proofCount });
    // Each instance won some of the races, so that none decided alone.
    const after = await Promise.all(instances.map(countServed));
    const served = after.map((count, index) => count - (before[index] ?? 0));
    expect(served[0]).toBeGreaterThan(0);
    expect(served[1]).toBeGreaterThan(0);
    const opened = pairs.flatMap(({ answers }) => answers).filter(({ status }) => status === 200);
    expect(served.reduce((sum, count) => sum + count)).toBe(opened.length);
  });

  it(`${proofCount} proofs, each sent twice at once through nginx → exactly one 200 each, from both instances`, async () => {
    const before = await Promise.all(instances.map(countServed));
    const pairs = (await repeat(proofCount, () => askJudged('nginx'))).flat();
    expect(tally(pairs.filter(isJudged))).toEqual({ '200 401': proofCount });
    const after = await Promise.all(instances.map(countServed));
    for (const [index, count] of after.entries()) expect(count - (before[index] ?? 0)).toBeGreaterThan(proofCount / 10);
  });

  it('Redis killed in the middle → no replay accepted, 503 for DPoP, 200 for Bearer; Redis back empty → 200 for new proofs alone', async () => {
    const bearer: number[] = [];
    let isOver = false;
    const askBearer = async (): Promise<void> => {
      while (!isOver) {
        for (const target of [...ways.straight(), ...ways.nginx()]) bearer.push((await askFreely(target)).status);
      }
    };
    const bearerDone = askBearer();

    let killed: Promise<void> | undefined;
    const pairs = await repeat(proofCount, (index) => {
      if (index === proofCount / 2) killed = redis.kill();
      return askBoth(index % 2 === 0 ? 'straight' : 'nginx');
    });
    await killed;
    const answers = pairs.flatMap((pair) => pair.answers);
    const accepted = pairs.filter((pair) => pair.answers.some(({ status }) => status === 200));
    expect(accepted.filter((pair) => pair.answers.every(({ status }) => status === 200))).toEqual([]);
    expect(accepted.length).toBeGreaterThan(proofCount / 4);
    const unavailable = answers.filter(({ status }) => status === 503);
    expect(unavailable.length).toBeGreaterThan(atOnce);
    for (const answer of unavailable) {
      expect(answer).toMatchObject({ retryAfter: '5', challenge: undefined, nonce: undefined });
      expect(answer.body).toContain('temporarily_unavailable');
    }
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 401, 503]));

    // Whatever was accepted before is not accepted now.
    const askAgain = (): Promise<readonly (readonly number[])[]> =>
      repeat(accepted.length, async (index) => {
        const { way, credentials } = accepted[index] ?? { way: 'straight', credentials: {} };
        const replies = await Promise.all(ways[way]().map((target) => ask(target, credentials)));
        return replies.map(({ status }) => status);
      });
    expect(new Set((await askAgain()).flat())).toEqual(new Set([503]));

    // It comes back empty, and with it nothing that was used before.
    await redis.restart();
    const targets = [...ways.straight(), ...ways.nginx()];
    expect(
      await until(async () => (await Promise.all(targets.map(askAfresh))).every(({ status }) => status === 200)),
    ).toBe(true);
    // 401 where the first of both has left its record.
    for (const status of (await askAgain()).flat()) expect([401, 503]).toContain(status);
    isOver = true;
    await bearerDone;
    expect(bearer.length).toBeGreaterThan(0);
    expect(bearer.filter((status) => status !== 200)).toEqual([]);
    const after = (await repeat(50, () => askJudged('straight'))).flat();
    expect(tally(after.filter(isJudged))).toEqual({ '200 401': 50 });
  });
});
