import { afterAll, expect, it } from 'vitest';
import { chooseSeed, countRequests, runTarget, targets } from '../../tools/faults/isolation/run.js';
import { makeEcKey } from '../../tools/faults/tokens.js';
import { makeFolder } from '../../tools/shared/folder.js';
import { makeIdentity } from '../../tools/shared/identity.js';
import { processors } from '../../tools/shared/processes.js';
import { startProvider } from '../../tools/shared/provider.js';
import { runtimeArgs } from '../support/service-process.ts';

// The same clients as in `npm run faults -- --only markers`, with fewer requests.

const requests = Number(process.env['MARKER_REQUESTS'] ?? 1500);
const seed = chooseSeed();
const folder = makeFolder('markers');
const identity = await makeIdentity(folder);
const key = makeEcKey('ec-key');
const provider = await startProvider({ identity, keys: [key], maxAge: undefined });
afterAll(() => provider.stop());
const environment = { NODE_OPTIONS: runtimeArgs.join(' ') };
const world = { provider, identity, key, folder, processor: processors.all, environment };

it.each(targets.map((target) => [target.name, target] as const))(
  'every connection has a marker: %s: requests in random cuts → no byte of another connection',
  async (_name, target) => {
    const part = { requests: countRequests(target, requests), seed, first: 1 };
    const { counts, defects } = await runTarget(target, world, part);
    expect(defects, `PROPERTY_SEED=${seed}`).toEqual([]);
    expect(counts.requests).toBeGreaterThanOrEqual(part.requests);
    expect(counts.lines).toBeGreaterThan(0);
    if (target.kinds !== 'proxy') return;
    expect(counts.received).toBeGreaterThan(0);
    expect(counts.tunnels).toBeGreaterThan(0);
  },
);
