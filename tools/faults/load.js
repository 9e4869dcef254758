// The handle on the process that sends.
import { fileURLToPath } from 'node:url';
import { pin } from './affinity.js';
import { createAsking, endChild, startChild } from './children.js';

const program = fileURLToPath(new URL('load-process.js', import.meta.url));

/** Starts the process that sends; its methods take the name of a stream first. */
export function startLoad() {
  const helper = startChild(pin('load', [process.execPath, program]), {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const ask = createAsking(helper);
  return {
    start: (stream, options) => ask('start', { stream, ...options }),
    /** From now on these statuses are right, by kind; those before stay right for what was sent before. */
    expect: (stream, kinds) => ask('expect', { stream, kinds }),
    replace: (stream, kind, source) => ask('replace', { stream, kind, source }),
    weigh: (stream, kind, weight) => ask('weigh', { stream, kind, weight }),
    state: (stream) => ask('state', { stream }),
    /** Waits for the answers, and reports. */
    stop: (stream, options) => ask('stop', { stream, ...options }),
    end: () => endChild(helper),
  };
}
