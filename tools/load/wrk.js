// One run of wrk against a server: requests a second, latencies, what was refused, and what the server spent.
import { fileURLToPath } from 'node:url';
import { cpuTime, processors, processorTimes, startChild } from '../shared/processes.js';

const script = fileURLToPath(new URL('wrk.lua', import.meta.url));

/** Returns the processor time of one or several servers. @param {number | readonly number[]} pids */
const spentBy = (pids) => [pids].flat().reduce((sum, pid) => sum + cpuTime(pid), 0);

/**
 * Loads a path for N seconds with the lines of a file, in turn; with `once`, until the lines end. Latencies in µs,
 * `cpu` in µs a request; `busy` and `wrk` are the used shares of their processors, `others` the share of the server's
 * processor that other programs used, `stolen` the share that the host took.
 */
export async function load(about) {
  const { pid, url, file, seconds, once, count = false } = about;
  const before = { at: performance.now(), server: spentBy(pid), all: processorTimes(processors.server) };
  const words = ['wrk', '-t1', '-c32', `-d${Math.ceil(seconds)}s`, '--timeout', '5s', '-s', script, url, '--'];
  const wrk = startChild([...words, file, count ? 'count' : '-', once ? 'once' : '-', String(seconds)], {
    processor: processors.load,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [wrk.child.stdout, wrk.child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  }
  await wrk.ended;
  const [, result] = output.match(/^RESULT (.*)$/m) ?? [];
  if (result === undefined) throw new Error(`wrk gave no result: ${output}`);
  const measured = JSON.parse(result);
  const spent = spentBy(pid) - before.server;
  const after = processorTimes(processors.server);
  const stolen = after.stolen - before.all.stolen;
  const others = after.worked - before.all.worked - spent;
  // wrk has read its lines in this time as well.
  const elapsed = (performance.now() - before.at) * 1000;
  return {
    ...measured,
    rate: measured.requests / measured.seconds,
    cpu: spent / measured.requests,
    busy: spent / 1e6 / measured.seconds,
    others: Math.max(0, others) / elapsed,
    stolen: stolen / elapsed,
    wrk: measured.spent / measured.seconds,
  };
}
