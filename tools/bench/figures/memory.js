// Resident memory of the service: idle, after as many tokens as its cache may hold, after many more.
import { setTimeout as sleep } from 'node:timers/promises';
import { load } from '../../load/wrk.js';
import { findFreePort } from '../../shared/network.js';
import { residentMemory } from '../../shared/processes.js';
import { startServer } from '../running.js';
import { servers } from '../servers.js';

const many = 200_000;
/** Slightly more than a half, because requests in flight at the end are not counted. */
const batch = 100_100;
const starts = 7;
/** More than a cache of verified tokens holds by default; it keeps those that come twice. */
const twice = 12_000;
const full = 100_000;
/** Seconds in which a batch must be through. */
const patience = 60;
/** Seconds until garbage of the last batch is gone. */
const rest = 2;

/** Returns the memory of the service after its first response, in MiB, for several starts. */
async function measureIdle(about) {
  const mebibytes = [];
  for (let i = 1; i < starts; i++) {
    const running = await startServer('idle', servers.portcullis, { ...about, port: await findFreePort() });
    mebibytes.push(residentMemory(running.pid));
    await running.stop();
  }
  return mebibytes;
}

/**
 * Returns MiB by the number of distinct tokens. ES256 tokens take a tenth of the time to sign; the service allows them.
 */
export async function measureMemory({ scene, say }) {
  const key = scene.makeTokenKey('ES256');
  const provider = await scene.startProvider([key]);
  const about = { alg: 'ES256', kid: key.kid, key: key.pem, issuer: provider.issuer };
  const told = {
    ...scene,
    ...provider,
    mintOne: () => scene.mintOne({ iss: provider.issuer }, { alg: 'ES256', kid: key.kid }, key.privateKey),
  };
  const environment = { ALGORITHMS: 'RS256,ES256' };
  const port = await findFreePort();
  const running = await startServer('memory', servers.portcullis, { scene: told, port, environment });
  const idle = [residentMemory(running.pid), ...(await measureIdle({ scene: told, environment }))];
  const mebibytes = /** @type {{ full?: number, many?: number }} */ ({});
  let seen = 0;
  try {
    let next = scene.makeBearer(batch, about);
    while (seen < many) {
      const made = await (next ?? scene.makeBearer(batch, about));
      const lines = made.flatMap((line, i) => (seen === 0 && i < twice ? [line, line] : [line]));
      const file = scene.write('memory.txt', `${lines.join('\n')}\n`);
      // Made while the others are sent: no rate is measured here.
      next = seen + batch < many ? scene.makeBearer(batch, about) : undefined;
      const { requests, refused } = await load({ ...running, file, seconds: patience, once: true });
      if (refused > 0) throw new Error(`${refused} of ${requests} tokens were refused`);
      seen += requests - (seen === 0 ? twice : 0);
      if (mebibytes.full === undefined && seen >= full) mebibytes.full = residentMemory(running.pid);
      say(`memory: ${seen} tokens, ${Math.round(residentMemory(running.pid))} MiB`);
    }
    await sleep(rest * 1000);
    mebibytes.many = residentMemory(running.pid);
    return { idle, mebibytes, seen: { full, many } };
  } finally {
    await running.stop();
    await provider.stop();
  }
}
