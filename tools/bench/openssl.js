// The cost of one signature check in OpenSSL's own loop.
import { text } from 'node:stream/consumers';
import { processors, startChild } from '../shared/processes.js';

/** Its name among the servers of a run. */
export const opensslName = 'openssl';
/** Arguments, and the output line of each; the checks a second are at the same position. */
const checks = { rs256: { asked: 'rsa2048', line: /^\+F2:.*$/m }, es256: { asked: 'ecdsap256', line: /^\+F4:.*$/m } };
const position = 4;

/**
 * µs of processor time of one check, by its algorithm; none where `openssl` is not installed.
 *
 * @param {{ algorithms?: readonly string[], processor?: string }} [options]
 */
export async function measureOpenssl({ algorithms = Object.keys(checks), processor = processors.server } = {}) {
  const names = algorithms.map((name) => checks[name].asked);
  const openssl = startChild(['openssl', 'speed', '-mr', '-seconds', '1', ...names], {
    processor,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const output = text(openssl.child.stdout).catch(() => '');
  await openssl.ended.catch(() => undefined);
  return readSpeed(await output);
}

/** Reads the lines for machines, `+F2:number:bits:signatures:checks` and `+F4:…`, a second of processor time. */
export function readSpeed(output) {
  const found = Object.entries(checks).flatMap(([name, { line }]) => {
    const rate = Number(output.match(line)?.[0].split(':')[position]);
    return rate > 0 ? [[name, 1e6 / rate]] : [];
  });
  return Object.fromEntries(found);
}
