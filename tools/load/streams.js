// The handle on the process that sends.
import { startHelper } from '../shared/processes.js';

/** Starts the process that sends; its methods take the name of a stream first. */
export function startLoad() {
  const { ask, end } = startHelper(new URL('streams-process.js', import.meta.url));
  const methods = ['expect', 'replace', 'weigh', 'state', 'stop'];
  const calls = methods.map((method) => [method, (stream, ...args) => ask('call', { stream, method, args })]);
  return { start: (stream, options) => ask('start', { stream, ...options }), ...Object.fromEntries(calls), end };
}
