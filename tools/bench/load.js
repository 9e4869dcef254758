// One run of wrk against a server: requests a second, latencies, what was refused, and what the server spent.
import { fileURLToPath } from 'node:url';
import { cpuTime, processors, processorTimes, startChild } from './children.js';

const script = fileURLToPath(new URL('load.lua', import.meta.url));

/** Processor time of one server, or of several that answer together. @param {number | readonly number[]} pids */
const spentBy = (pids) => [pids].flat().reduce((sum, pid) => sum + cpuTime(pid), 0);

/**
 * Loads a path for so many seconds with the lines of a file, in turn; with `once`, no longer than the lines last.
 * Latencies in µs, `cpu` in µs a request; `busy` and `wrk` are the shares of their processors that the server and wrk
 * used, `others` the share of the server's that somebody else did, `stolen` what the host took of it. `wakes`: how often
 * wrk had gone to sleep, a request; each time, an answer of the server woke it.
 */
export async function load(about) {
  const { pid, url, file, seconds, once, count = false, threads = 1, processor = processors.load } = about;
  const { connections = 32 * threads } = about;
  const before = { at: performance.now(), server: spentBy(pid), all: processorTimes(processors.server) };
  const words = [
    'wrk',
    `-t${threads}`,
    `-c${connections}`,
    `-d${Math.ceil(seconds)}s`,
    '--timeout',
    '5s',
    '-s',
    script,
    url,
    '--',
  ];
  const wrk = startChild([...words, file, count ? 'count' : '-', once ? 'once' : '-', String(seconds)], {
    processor,
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
    wrk: measured.spent / measured.seconds / threads,
    wakes: measured.sleeps / measured.requests,
  };
}
