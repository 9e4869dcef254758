// One run of wrk against a server: requests a second, latencies, what was refused, and what the server spent.
import { fileURLToPath } from 'node:url';
import { cpuTime, processors, processorTime, startChild } from './children.js';

const script = fileURLToPath(new URL('load.lua', import.meta.url));

/**
 * Loads a path for so many seconds with the lines of a file, in turn; with `once`, no longer than the lines last.
 * Latencies in µs, `cpu` in µs a request; `busy` and `wrk` are the shares of their
 * processors that the server and wrk used, `others` the share of the server's that somebody else did.
 */
export async function load({ pid, url, file, seconds, once, count = false, threads = 1, processor = processors.load }) {
  const connections = 32 * threads;
  const before = { at: performance.now(), server: cpuTime(pid), all: processorTime(processors.server) };
  const words = [
    'wrk',
    `-t${threads}`,
    `-c${connections}`,
    `-d${seconds}s`,
    '--timeout',
    '5s',
    '-s',
    script,
    url,
    '--',
  ];
  const wrk = startChild([...words, file, count ? 'count' : '-', once ? 'once' : '-'], {
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
  const spent = cpuTime(pid) - before.server;
  const others = processorTime(processors.server) - before.all - spent;
  // wrk has read its lines in this time as well.
  const elapsed = (performance.now() - before.at) * 1000;
  return {
    ...measured,
    rate: measured.requests / measured.seconds,
    cpu: spent / measured.requests,
    busy: spent / 1e6 / measured.seconds,
    others: Math.max(0, others) / elapsed,
    wrk: measured.spent / measured.seconds / threads,
  };
}
