// A service that nothing befalls: the measure for every row, taken anew before each, for others may use the machine too.
import { openScene } from './scene.js';

const share = 0.7;
const seconds = { full: { warm: 0.5, full: 2, steady: 3 }, quick: { warm: 0.2, full: 0.6, steady: 0.8 } };
const connections = 64;

/** Starts it; it is idle but while it is measured. */
export async function openReference(bench) {
  const scene = await openScene(bench, {});
  const { load } = bench;
  const { warm, full, steady } = scene.pace(seconds.full, seconds.quick);

  /** Measures the maximum number of responses a second. */
  async function measureCapacity() {
    await scene.send('full', { connections, kinds: scene.usual });
    await scene.sleep(warm);
    const before = await load.state('full');
    const startedAt = performance.now();
    await scene.sleep(full);
    const after = await load.state('full');
    const capacity = ((after.answered - before.answered) / (performance.now() - startedAt)) * 1000;
    demandSound(await scene.stopStream('full'));
    return capacity;
  }

  /** Measures `capacity` and the constant `rate` in requests a second, and `p50` and `p99` at that rate in ms. */
  async function measure() {
    const capacity = await measureCapacity();
    const rate = Math.max(1, Math.round(capacity * share));
    await scene.send('steady', { rate, connections, kinds: scene.usual });
    await scene.sleep(steady);
    const report = await scene.stopStream('steady');
    demandSound(report);
    return { capacity: Math.round(capacity), rate, p50: report.p50, p99: report.p99 };
  }

  // The first time, most of its code is not compiled yet.
  await measure();
  return { measure, close: scene.close };
}

function demandSound({ wrong, unexplained, lost }) {
  const amiss = [...Object.keys(wrong), ...Object.keys(unexplained)];
  if (amiss.length > 0 || lost > 0) throw new Error(`nothing was wrong, and yet: ${amiss.join(', ')}; ${lost} lost`);
}
