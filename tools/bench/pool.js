// The lines of all workloads but those with proofs: made once, kept in files of the run, sent to each server once.
import { workloads } from './workloads.js';

/** Makes the tokens and writes the files; by workload, then by `warmUp`, `measured` and `again`. Time in seconds. */
export async function fillPool(scene, { names, seconds, warmUpSeconds, pace }) {
  const made = names.filter((name) => workloads[name].lines !== undefined);
  const isOnce = made.some((name) => workloads[name].once);
  const warm = await scene.makeBearer(1);
  const files = Object.fromEntries(made.map((name) => [name, {}]));
  for (const [part, duration] of Object.entries({
    warmUp: (warmUpSeconds * 2) / 3,
    measured: seconds,
    again: seconds,
  })) {
    const count = Math.round(pace * duration);
    const cold = isOnce ? await scene.makeBearer(count) : [];
    for (const name of made) {
      const lines = workloads[name].lines({ warm, cold });
      files[name][part] = scene.write(`${name}-${part}.txt`, `${lines.join('\n')}\n`);
    }
  }
  return files;
}
