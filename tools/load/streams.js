// The handle on the process that sends.
import { startHelper } from '../shared/processes.js';

/** Starts the process that sends; its methods take the name of a stream first. */
export function startLoad() {
  const { ask, end } = startHelper(new URL('streams-process.js', import.meta.url));
  return {
    start: (stream, options) => ask('start', { stream, ...options }),
    /** Sets the expected statuses by kind. Requests in flight may also get the earlier ones. */
    expect: (stream, kinds) => ask('expect', { stream, kinds }),
    replace: (stream, kind, source) => ask('replace', { stream, kind, source }),
    weigh: (stream, kind, weight) => ask('weigh', { stream, kind, weight }),
    state: (stream) => ask('state', { stream }),
    /** Awaits the responses, and reports. */
    stop: (stream, options) => ask('stop', { stream, ...options }),
    end,
  };
}
