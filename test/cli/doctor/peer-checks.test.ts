import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { calculateJwkThumbprint } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { findFreePort } from '../../../tools/shared/network.js';
import { passRedisStart, passStart } from '../../support/pass-start.ts';
import { needs } from '../../support/programs.ts';
import { startTestRedis, type TestRedis } from '../../support/redis.ts';
import { answerCheck, startImpostor } from '../../support/redis-store.ts';
import type { ServiceProcess } from '../../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../../support/test-provider.ts';
import { findVariant, readEnvironment, startVariant } from '../../support/variant-service.ts';
import { codesOf, runDoctor } from './run-doctor.ts';

let provider: TestProvider;
let folder: string;
let credentials: readonly string[];
let running: ServiceProcess[] = [];

beforeAll(async () => {
  provider = await startTestProvider();
  folder = await mkdtemp(join(tmpdir(), 'portcullis-peers-'));
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jkt = await calculateJwkThumbprint(publicKey.export({ format: 'jwk' }) as { readonly kty: string }); // an EC JWK
  await writeFile(join(folder, 'token'), `${await provider.sign({ cnf: { jkt } })}\n`);
  await writeFile(join(folder, 'key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }));
  credentials = ['--token-file', join(folder, 'token'), '--dpop-key-file', join(folder, 'key.pem')];
});
afterAll(async () => {
  await provider.close();
  await rm(folder, { recursive: true });
});
afterEach(async () => {
  await Promise.all(running.map((service) => service.stop()));
  running = [];
});

const environment = () => readEnvironment(findVariant('a'), provider);

/** Two instances with these settings; the flags that name them. */
async function start(...each: readonly Readonly<Record<string, string>>[]): Promise<readonly string[]> {
  running = await Promise.all(each.map((more) => startVariant(findVariant('a'), provider, more)));
  // Before the keys are there a token gets 503, and no nonce.
  await Promise.all(running.map((service) => service.findLog(({ event }) => event === 'keys_fetched')));
  await passStart();
  return running.flatMap(({ url }) => ['--peer', url]);
}

const nonces = (secret: string) => ({ DPOP_NONCE: 'required', DPOP_NONCE_SECRET: secret.repeat(32) });

describe('nonces', () => {
  it('one secret → ok', async () => {
    const peers = await start(nonces('a'), nonces('a'));
    const { status, findings } = await runDoctor(['--only', 'nonces', ...peers, ...credentials], environment());
    expect(findings).toMatchObject([{ level: 'ok' }]);
    expect(status).toBe(0);
  });

  it('two secrets → D140', async () => {
    const peers = await start(nonces('a'), nonces('b'));
    const { status, findings } = await runDoctor(['--only', 'nonces', ...peers, ...credentials], environment());
    expect(codesOf(findings)).toEqual(['D140']);
    expect(findings[0]?.seen).toContain('DPOP_NONCE_SECRET differs');
    expect(status).toBe(1);
  });

  it('no token, a memory for each instance → skipped with the needed flags', async () => {
    const { findings } = await runDoctor(
      ['--only', 'nonces', ...(await start(nonces('a'), nonces('b')))],
      environment(),
    );
    expect(findings).toMatchObject([{ level: 'skipped', seen: expect.stringContaining('replay stores') }]);
  });

  it('no token, nonces off → skipped with the needed flags', async () => {
    const { findings } = await runDoctor(['--only', 'nonces', ...(await start({}, {}))], environment());
    expect(findings).toMatchObject([{ level: 'skipped', seen: expect.stringContaining('--dpop-key-file') }]);
  });

  it('unreachable instance → D141 with its address', async () => {
    const peers = await start(nonces('a'));
    const away = `http://127.0.0.1:${await findFreePort()}`;
    const { findings } = await runDoctor(['--only', 'nonces', ...peers, '--peer', away, ...credentials], environment());
    expect(codesOf(findings)).toEqual(['D141']);
    expect(findings[0]?.seen).toBe(`${away}: ECONNREFUSED`);
  });
});

describe('audiences', () => {
  it('equal → ok; different → D142 with both', async () => {
    const peers = await start({}, {}, { IDP_AUDIENCE: 'urn:other' });
    const same = await runDoctor(['--only', 'audiences', ...peers.slice(0, 4)], environment());
    expect(same.findings).toMatchObject([{ level: 'ok' }]);
    const { findings } = await runDoctor(['--only', 'audiences', ...peers], environment());
    expect(codesOf(findings)).toEqual(['D142']);
    expect(findings[0]?.seen).toBe(`${running[2]?.url} has urn:other`);
  });
});

describe('the replay store', () => {
  it('no token and key → skipped with the needed flags', async () => {
    const peers = await start({}, {});
    const { status, findings } = await runDoctor(['--only', 'replay', ...peers], environment());
    expect(findings).toMatchObject([{ level: 'skipped', seen: expect.stringContaining('--dpop-key-file') }]);
    expect(status).toBe(0);
  });

  it('each instance has its own memory → D180', async () => {
    const peers = await start({}, {});
    const { status, findings } = await runDoctor(['--only', 'replay', ...peers, ...credentials], environment());
    expect(codesOf(findings)).toEqual(['D180']);
    expect(findings[0]?.fix).toContain('REPLAY_STORE=redis://');
    expect(status).toBe(1);
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
    const { findings } = await runDoctor(['--only', 'replay,redis', ...peers, ...credentials], {
      ...environment(),
      REPLAY_STORE: redis.url,
    });
    expect(findings.map(({ level }) => level)).toEqual(['ok', 'ok']);
    expect(JSON.stringify(findings)).not.toContain('right-password');
  });

  it('nonces without a token: one secret → nothing is wrong, two secrets → D140', async () => {
    const shared = (secret: string) => ({ REPLAY_STORE: redis.url, ...nonces(secret) });
    const peers = await start(shared('a'), shared('a'), shared('b'));
    const examineNonces = (...flags: readonly string[]) => runDoctor(['--only', 'nonces', ...flags], environment());
    const same = await examineNonces(...peers.slice(0, 4));
    expect(same.findings).toMatchObject([{ level: 'ok', seen: '2 instances send the same nonce' }]);
    const other = await examineNonces(...peers);
    expect(codesOf(other.findings)).toEqual(['D140']);
    expect(other.findings[0]?.seen).toContain(`${running[2]?.url} does not know`);
  });

  it('unreachable → D150 without the password', async () => {
    const { status, findings } = await examine(`redis://:right-password@127.0.0.1:${await findFreePort()}`);
    expect(codesOf(findings)).toEqual(['D150']);
    expect(findings[0]?.seen).toContain('ECONNREFUSED');
    expect(JSON.stringify(findings)).not.toContain('right-password');
    expect(status).toBe(1);
  });

  it.each(['redis://:wrong-password@', 'redis://'])('%s: the password is wrong or missing → D151', async (start) => {
    const { findings } = await examine(`${start}127.0.0.1:${redis.port}`);
    expect(codesOf(findings)).toEqual(['D151']);
    expect(JSON.stringify(findings)).not.toContain('wrong-password');
  });

  it.each([
    ['replica', 'D155', ['REPLICAOF', '127.0.0.1', '1']],
    ['out of memory', 'D156', ['CONFIG', 'SET', 'maxmemory', '1']],
    ['user without EVAL', 'D157', ['ACL', 'SETUSER', 'default', '-eval', '-evalsha']],
  ])('%s → %s', async (_, code, command) => {
    const own = await startTestRedis();
    try {
      await own.command(...command);
      const { status, findings } = await examine(own.url);
      expect([codesOf(findings), status]).toEqual([[code], 1]);
      expect(findings[0]?.fix).not.toContain('Start Redis');
    } finally {
      await own.stop();
    }
  });

  it('no free connection → D158', async () => {
    const own = await startTestRedis({ flags: ['--maxclients', '1'] });
    const held = connect(own.port, '127.0.0.1');
    try {
      await once(held, 'connect');
      const { findings } = await examine(own.url);
      expect(codesOf(findings)).toEqual(['D158']);
    } finally {
      held.destroy();
      await own.stop();
    }
  });

  it('slower than REPLAY_TIMEOUT → D159', async () => {
    const slow = await startImpostor(answerCheck);
    const { findings } = await examine(slow.url);
    expect(codesOf(findings)).toEqual(['D159']);
    expect(findings[0]?.seen).toContain('no response within 250 ms');
  });

  it.each(['redis+sentinel', 'redis+cluster'])('%s that is unreachable → D150', async (scheme) => {
    const port = await findFreePort();
    const { status, findings } = await runDoctor(['--only', 'redis', '--timeout', '3'], {
      ...environment(),
      REPLAY_STORE: `${scheme}://127.0.0.1:${port}${scheme.endsWith('sentinel') ? '/gate' : ''}`,
    });
    expect([codesOf(findings), status]).toEqual([['D150'], 1]);
  });

  it('node of a cluster → D152', async () => {
    const cluster = await startTestRedis({ flags: ['--cluster-enabled', 'yes'] });
    try {
      const { status, findings } = await examine(cluster.url);
      expect(codesOf(findings)).toEqual(['D152']);
      expect(status).toBe(1);
    } finally {
      await cluster.stop();
    }
  });

  it('eviction allowed → D153, a warning', async () => {
    await redis.command('CONFIG SET maxmemory 100mb');
    await redis.command('CONFIG SET maxmemory-policy allkeys-lru');
    const { status, findings } = await examine(redis.url);
    expect(codesOf(findings)).toEqual(['D153']);
    expect(status).toBe(0);
  });
});
