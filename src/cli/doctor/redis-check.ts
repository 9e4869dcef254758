import { hideCredentials } from '../../server/settings/setting-report.ts';
import { codeOf } from './call.ts';
import type { DoctorCheck, Scene } from './examination.ts';
import { type Outcome, ok, problem, skipped } from './finding.ts';

/** Words with which Redis refuses a user or a password. */
const refused = /^(?:WRONGPASS|NOAUTH|NOPERM|ERR AUTH|ERR invalid password|ERR Client sent AUTH)/;

async function checkRedis(scene: Scene): Promise<readonly Outcome[]> {
  const { replayStore } = scene.subject;
  if (replayStore === undefined || !/^rediss?:/.test(replayStore)) {
    return [skipped(`the replay store is ${replayStore === undefined ? 'not known without settings' : replayStore}`)];
  }
  const name = scene.subject.nameOf('replayStore');
  const shown = hideCredentials(replayStore).replace(/^\*\*\*@/, 'redis://***@');
  const redis = await import('@redis/client').catch(() => undefined);
  if (redis === undefined) {
    return [problem('D154', { seen: 'the package @redis/client is missing', fix: 'npm install @redis/client' })];
  }
  const client = redis.createClient({
    url: replayStore,
    RESP: 2,
    disableClientInfo: true,
    socket: { connectTimeout: scene.timeout, socketTimeout: scene.timeout, reconnectStrategy: false },
  });
  // Rejections tell what happened; an event without a listener would end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.ping();
    const info = await client.info();
    return describeServer(info, shown, name);
  } catch (error) {
    const message = error instanceof Error ? error.message : '';
    if (refused.test(message)) {
      return [
        problem('D151', {
          seen: `${shown}: ${/^\w+/.exec(message)?.[0] ?? 'refused'}`,
          fix: `Correct user and password in ${name}. What is not a letter or a digit is percent-encoded.`,
        }),
      ];
    }
    return [
      problem('D150', { seen: `${shown}: ${codeOf(error)}`, fix: `Start Redis, or correct host and port in ${name}.` }),
    ];
  } finally {
    client.destroy();
  }
}

function describeServer(info: string, shown: string, name: string): readonly Outcome[] {
  const read = (field: string): string => new RegExp(`^${field}:(\\S*)`, 'm').exec(info)?.[1] ?? '';
  if (read('cluster_enabled') === '1') {
    return [
      problem('D152', {
        seen: `${shown} is a node of a cluster`,
        expected: 'a single server, or one with replicas',
        fix: `Name a server without cluster mode in ${name}.`,
      }),
    ];
  }
  const policy = read('maxmemory_policy');
  if (policy !== '' && policy !== 'noeviction' && read('maxmemory') !== '0') {
    return [
      problem('D153', {
        seen: `maxmemory-policy is ${policy}`,
        expected: 'noeviction',
        fix: 'CONFIG SET maxmemory-policy noeviction',
      }),
    ];
  }
  return [ok(`${shown} answers, Redis ${read('redis_version')}`)];
}

/** The check of the replay store. */
export const redisCheck: DoctorCheck = {
  id: 'redis',
  title: 'Redis can be used as the replay store.',
  run: checkRedis,
};
