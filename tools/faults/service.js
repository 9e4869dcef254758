// The service in processes of its own, as `portcullis serve` runs it.
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { holdsWithin } from '../shared/network.js';
import { endChild, processors, residentMemory, startChild } from '../shared/processes.js';
import { audience } from './tokens.js';

const program = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/**
 * Starts the service before a provider and waits until it listens; `environment` and `words` hold its settings, `onLine` gets
 * each line of its log.
 */
export async function startService({
  provider,
  identity,
  environment = {},
  words = ['serve'],
  processor = processors.server,
  onLine = (_line) => {},
}) {
  const running = startChild([process.execPath, program, ...words], {
    processor,
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    env: {
      PATH: process.env.PATH,
      NODE_EXTRA_CA_CERTS: identity.certificateFile,
      IDP_DOMAIN: provider.domain,
      IDP_AUDIENCE: audience,
      HOST: '127.0.0.1',
      PORT: '0',
      ADMIN_PORT: '0',
      ...environment,
    },
  });
  const { child } = running;
  const startedAt = performance.now();
  /** All log lines, except request lines. */
  const lines = [];
  let requests = 0;
  let rest = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    const parts = (rest + text).split('\n');
    rest = parts.pop() ?? '';
    for (const part of parts) {
      onLine(part);
      if (part.includes('"event":"request"'))
        requests++; // parsing each would cost the load its processor
      else lines.push({ ...JSON.parse(part), seenAt: performance.now() });
    }
  });
  const [{ url, adminUrl }] = await running.orEnd(once(child, 'message'), 'the service');
  const countLines = (event) => lines.filter((line) => line.event === event).length;

  return {
    pid: child.pid,
    port: Number(new URL(url).port),
    adminUrl,
    lines,
    countLines,
    /** Number of request lines in the log so far. */
    get requests() {
      return requests;
    },
    get hasEnded() {
      return child.exitCode !== null || child.signalCode !== null;
    },
    /** Seconds since it was started. */
    age: () => (performance.now() - startedAt) / 1000,
    /** Waits until N lines of an event were written; false if they were not within the seconds. */
    awaitLines: (event, count, seconds) => holdsWithin(seconds, () => countLines(event) >= count),
    /** Waits until it is ready; false if it is not within the seconds. */
    awaitReady: (seconds) => holdsWithin(seconds, async () => (await fetch(`${adminUrl}/readyz`)).ok),
    /** The value of a metric without labels, now. */
    async count(name) {
      const text = await (await fetch(`${adminUrl}/metrics`)).text();
      return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
    },
    /** Reads its log no more, until `readLog()`. */
    blockLog: () => child.stdout.pause(),
    readLog: () => child.stdout.resume(),
    /** Fetches that were tried, by all of its processes. */
    get attempts() {
      return countLines('keys_fetched') + countLines('keys_fetch_failed');
    },
    signal: (name) => child.kill(name),
    /** Resident memory of all of its processes, in MiB. */
    memory: () => residentMemory(child.pid),
    ended: running.ended,
    stop: () => endChild(running),
  };
}
