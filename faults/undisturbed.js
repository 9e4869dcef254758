// What the service can do while nothing is wrong: the measure for every row.
import { openScene } from './scene.js';

const share = 0.7;
const warmSeconds = 1;
const fullSeconds = 3;
const steadySeconds = { full: 5, quick: 2 };

/** Measures how many requests a second the service answers, and the steady load's own times: `rate`, `p50`, `p99` (ms). */
export async function undisturbed(basis) {
  const scene = await openScene({ ...basis, rate: undefined, p99: undefined }, {});
  try {
    const { load } = basis;
    const kinds = scene.kinds();
    await scene.send('full', { connections: 64, kinds });
    await scene.sleep(warmSeconds);
    // The best of some seconds: others who use this machine may slow it down, and cannot speed it up.
    let capacity = 0;
    for (let second = 0; second < fullSeconds; second++) {
      const before = await load.state('full');
      const startedAt = performance.now();
      await scene.sleep(1);
      const { answered } = await load.state('full');
      capacity = Math.max(capacity, ((answered - before.answered) / (performance.now() - startedAt)) * 1000);
    }
    const full = await scene.stopStream('full');
    const rate = Math.round(capacity * share);
    await scene.send('steady', { rate, connections: 64, kinds });
    await scene.sleep(scene.pace(steadySeconds.full, steadySeconds.quick));
    const steady = await scene.stopStream('steady');
    for (const { wrong, unexplained, lost } of [full, steady]) {
      const amiss = [...Object.keys(wrong), ...Object.keys(unexplained)];
      if (amiss.length > 0 || lost > 0) throw new Error(`nothing is wrong, and yet: ${amiss.join(', ')}; ${lost} lost`);
    }
    return { capacity: Math.round(capacity), rate, p50: steady.p50, p99: steady.p99 };
  } finally {
    await scene.close();
  }
}
