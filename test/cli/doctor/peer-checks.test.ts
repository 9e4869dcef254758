import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { calculateJwkThumbprint } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { findFreePort } from '../../../tools/shared/network.js';
import { useFolder } from '../../support/folder.ts';
import type { OpenedService } from '../../support/open-service.ts';
import { passRedisStart, passStart } from '../../support/pass-start.ts';
import { needs } from '../../support/programs.ts';
import { startTestRedis, type TestRedis } from '../../support/redis.ts';
import { useTestProvider } from '../../support/test-provider.ts';
import { findVariant, openVariant, readEnvironment } from '../../support/variant-service.ts';
import { namesOf, runDoctor } from './run-doctor.ts';

const provider = await useTestProvider();
const folder = useFolder();
let credentials: readonly string[];
let narrow: readonly string[];
let running: OpenedService[] = [];

beforeAll(async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jkt = await calculateJwkThumbprint(publicKey.export({ format: 'jwk' }) as { readonly kty: string }); // an EC JWK
  await writeFile(join(folder, 'token'), `${await provider.sign({ cnf: { jkt } })}\n`);
  await writeFile(join(folder, 'key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }));
  await writeFile(join(folder, 'narrow'), await provider.sign({ cnf: { jkt }, scope: '' }));
  credentials = ['--token-file', join(folder, 'token'), '--dpop-key-file', join(folder, 'key.pem')];
  narrow = ['--token-file', join(folder, 'narrow'), ...credentials.slice(2)];
});
afterEach(async () => {
  await Promise.all(running.map((service) => service.stop()));
  running = [];
});

const environment = () => readEnvironment(findVariant('a'), provider);

/** Two instances with these settings; the flags that name them. */
async function start(...each: readonly Readonly<Record<string, string>>[]): Promise<readonly string[]> {
  running = await Promise.all(each.map((more) => openVariant(findVariant('a'), provider, more)));
  // Before the keys are there a token gets 503, and no nonce.
  await Promise.all(running.map((service) => service.findLog(({ event }) => event === 'keys_fetched')));
  await passStart();
  return running.flatMap(({ url }) => ['--peer', url]);
}

const nonces = (secret: string) => ({ DPOP_NONCE: 'required', DPOP_NONCE_SECRET: secret.repeat(32) });

describe('dpop', () => {
  it('one secret → ok; each instance has its own memory → replay_not_shared', async () => {
    const peers = await start(nonces('a'), nonces('a'));
    const { status, findings } = await runDoctor(['--only', 'dpop', ...peers, ...credentials], environment());
    expect(findings).toMatchObject([
      { level: 'ok' },
      { name: 'replay_not_shared', fix: expect.stringContaining('REPLAY_STORE=redis://') },
    ]);
    expect(status).toBe(1);
  });

  it('two secrets → nonces_differ', async () => {
    const peers = await start(nonces('a'), nonces('b'));
    const { findings } = await runDoctor(['--only', 'dpop', ...peers, ...credentials], environment());
    expect(namesOf(findings)).toEqual(['nonces_differ']);
    expect(findings[0]).toMatchObject({ fix: expect.stringMatching('same DPOP_NONCE_SECRET') });
  });

  it('token without the scope of the path → skipped, because a used proof is refused last', async () => {
    const peers = await start({}, {});
    const outside = `${running[0]?.url}/api/private-scoped`;
    const args = ['--only', 'dpop', '--from-outside', outside, ...peers, ...narrow];
    const { status, findings } = await runDoctor(args, environment());
    const refused = { level: 'skipped', seen: expect.stringContaining('refuses the token') };
    expect([status, findings]).toMatchObject([0, [{ level: 'skipped' }, refused]]);
  });

  it('no token, a memory for each instance → skipped with the needed flags', async () => {
    const { findings } = await runDoctor(['--only', 'dpop', ...(await start(nonces('a'), nonces('b')))], environment());
    expect(findings).toMatchObject([
      { level: 'skipped', seen: expect.stringContaining('replay stores') },
      { level: 'skipped', seen: expect.stringContaining('--dpop-key-file') },
    ]);
  });

  it('no token, nonces off → skipped with the needed flags', async () => {
    const { findings } = await runDoctor(['--only', 'dpop', ...(await start({}, {}))], environment());
    const skipped = { level: 'skipped', seen: expect.stringContaining('--dpop-key-file') };
    expect(findings).toMatchObject([skipped, skipped]);
  });

  it('unreachable instance → instance_unreachable with its address', async () => {
    const peers = await start(nonces('a'));
    const away = `http://127.0.0.1:${await findFreePort()}`;
    const { findings } = await runDoctor(['--only', 'dpop', ...peers, '--peer', away, ...credentials], environment());
    expect(namesOf(findings)).toEqual(['instance_unreachable']);
    expect(findings[0]?.seen).toBe(`${away}: ECONNREFUSED`);
  });
});

describe('Redis', needs('redis-server'), () => {
  let redis: TestRedis;
  beforeAll(async () => {
    redis = await startTestRedis({ password: 'right-password' });
  });
  afterAll(() => redis.stop());

  const examine = (url: string) => runDoctor(['--only', 'redis'], { ...environment(), REPLAY_STORE: url });

  it('shared by both instances → nothing is wrong', async () => {
    const peers = await start({ REPLAY_STORE: redis.url }, { REPLAY_STORE: redis.url });
    await passRedisStart(redis);
    const args = ['--only', 'dpop,redis', ...peers, ...credentials];
    const { findings } = await runDoctor(args, { ...environment(), REPLAY_STORE: redis.url });
    // Nonces are off.
    expect(findings.map(({ level }) => level)).toEqual(['ok', 'skipped', 'ok']);
    expect(JSON.stringify(findings)).not.toContain('right-password');
  });

  it('nonces without a token: one secret → nothing is wrong, two secrets → nonces_differ', async () => {
    const shared = (secret: string) => ({ REPLAY_STORE: redis.url, ...nonces(secret) });
    const peers = await start(shared('a'), shared('a'), shared('b'));
    const examineNonces = (...flags: readonly string[]) => runDoctor(['--only', 'dpop', ...flags], environment());
    const same = await examineNonces(...peers.slice(0, 4));
    const known = { level: 'ok', seen: '2 instances know the nonces of each other' };
    expect(same.findings).toMatchObject([known, { level: 'skipped' }]);
    const other = await examineNonces(...peers);
    expect(namesOf(other.findings)).toEqual(['nonces_differ']);
    expect(other.findings[0]?.seen).toContain(`${running[2]?.url} does not know`);
  });

  it('unreachable → redis_unreachable without the password', async () => {
    const { status, findings } = await examine(`redis://:right-password@127.0.0.1:${await findFreePort()}`);
    expect(namesOf(findings)).toEqual(['redis_unreachable']);
    expect(findings[0]?.seen).toContain('ECONNREFUSED');
    expect(JSON.stringify(findings)).not.toContain('right-password');
    expect(status).toBe(1);
  });

  it.each(['redis://:wrong-password@', 'redis://'])(
    '%s: the password is wrong or missing → redis_login',
    async (start) => {
      const { findings } = await examine(`${start}127.0.0.1:${redis.port}`);
      expect(namesOf(findings)).toEqual(['redis_login']);
      expect(JSON.stringify(findings)).not.toContain('wrong-password');
    },
  );

  it('no free connection → redis_clients', async () => {
    const own = await startTestRedis({ flags: ['--maxclients', '1'] });
    onTestFinished(() => own.stop());
    const held = connect(own.port, '127.0.0.1');
    onTestFinished(() => void held.destroy());
    await once(held, 'connect');
    expect(namesOf((await examine(own.url)).findings)).toEqual(['redis_clients']);
  });

  it('node of a cluster → redis_cluster', async () => {
    const cluster = await startTestRedis({ flags: ['--cluster-enabled', 'yes'] });
    onTestFinished(() => cluster.stop());
    const { status, findings } = await examine(cluster.url);
    expect([status, namesOf(findings)]).toEqual([1, ['redis_cluster']]);
  });

  it('eviction allowed → redis_evicts, a warning', async () => {
    await redis.command('CONFIG SET maxmemory 100mb');
    await redis.command('CONFIG SET maxmemory-policy allkeys-lru');
    const { status, findings } = await examine(redis.url);
    expect([status, namesOf(findings)]).toEqual([0, ['redis_evicts']]);
  });
});
