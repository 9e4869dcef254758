// The targets of the clients, and one run against each.
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { endChild, startChild } from '../../shared/processes.js';
import { signJws } from '../../shared/tokens.js';
import { startService } from '../service.js';
import { audience } from '../tokens.js';
import { createTally, runClients } from './clients.js';
import { kindsOf, writeRules } from './kinds.js';
import { ownersOf } from './marker.js';
import { startUpstream } from './upstream.js';

/** The program that serves the adapters of the library. */
const libraryProgram = fileURLToPath(new URL('library-process.js', import.meta.url));

const width = 48;
const readySeconds = 35;

/** Servers to test, with their `share` of the requests. */
export const targets = [
  { name: 'serve', share: 40, kinds: 'serve', command: 'serve' },
  { name: 'serve, TLS', share: 6, kinds: 'serve', command: 'serve', tls: true },
  { name: 'gate as the proxy', share: 24, kinds: 'proxy', command: 'gate' },
  { name: 'gate as the proxy, TLS', share: 4, kinds: 'proxy', command: 'gate', tls: true },
  { name: 'gate beside a proxy', share: 14, kinds: 'beside', command: 'gate' },
  { name: 'library', share: 12, kinds: 'library', command: 'library' },
];

/** A fixed seed in CI, otherwise a random one; `PROPERTY_SEED` repeats a run. */
export function chooseSeed() {
  const { PROPERTY_SEED: seed, CI: ci } = process.env;
  return Number(seed ?? (ci === undefined ? Math.floor(Math.random() * 2 ** 31) : 20_260_101));
}

/** The requests of a target among all of a run. */
export function countRequests({ share }, requests) {
  return Math.ceil((requests * share) / targets.reduce((sum, each) => sum + each.share, 0));
}

/**
 * Sends `requests` to one target; resolves with what was counted, the defects, and the number for the next connection.
 * `world` has the `provider` and its `identity`, its ES256 `key`, the `processor` and further `environment` of the processes, and a
 * `folder` for files.
 *
 * @param {typeof targets[number]} target
 * @param {any} world
 */
export async function runTarget({ kinds, command, tls = false }, world, { requests, seed, first }) {
  const { provider, identity, key, folder, processor, environment = {} } = world;
  const { issuer } = provider;
  const tally = createTally();
  let lines = 0;
  const onLine = (line) => {
    const owners = ownersOf(line);
    if (owners.size > 0) lines++;
    if (owners.size > 1) tally.add(`a log line with the markers of several connections`, line.slice(0, 400));
  };
  const upstream = kinds === 'proxy' ? await startUpstream(tally.add) : undefined;
  let running;
  try {
    running = await (command === 'library' ? startLibrary() : start());
    let next = first;
    for (const port of running.ports) {
      next = await runClients({
        ...{ port, width, seed, first: next, tally, tls },
        kinds: kindsOf[kinds],
        requests: Math.ceil(requests / running.ports.length),
        mint: (subject) => ({
          token: sign(issuer, subject),
          foreignToken: sign(`https://${subject.toLowerCase()}.example/`, subject),
        }),
      });
    }
    const status = await running.stop();
    if (command !== 'library' && status !== 0) tally.add(`the exit status ${status}`);
    running = undefined;
    return { counts: { ...tally.counts, lines, received: upstream?.received }, defects: tally.defects, next };
  } finally {
    await running?.stop();
    upstream?.close();
  }

  /** Starts `portcullis serve` or `portcullis gate`. */
  async function start() {
    const file = join(folder, 'isolation-rules.json');
    if (command === 'gate') writeFileSync(file, JSON.stringify(writeRules(issuer, audience)));
    const service = await startService({
      ...{ provider, identity, processor, onLine },
      words: [
        command,
        ...(command === 'gate' ? ['--rules', file] : []),
        ...(upstream === undefined ? [] : ['--upstream', `http://127.0.0.1:${upstream.port}`]),
      ],
      environment: {
        ALGORITHMS: 'RS256,ES256',
        ...(tls && { TLS_CERT: identity.certificateFile, TLS_KEY: identity.keyFile }),
        LOG_IDENTITY: 'plain',
        // On a busy host a client may pause for longer than the default, and its next request would meet the close.
        KEEP_ALIVE: '60',
        ...environment,
      },
    });
    if (!(await service.awaitReady(readySeconds))) throw new Error('the service is not ready');
    return { ports: [service.port], stop: service.stop };
  }

  /** Starts the program of the adapters. */
  async function startLibrary() {
    const argument = JSON.stringify({ issuer, audience, jwks: { keys: provider.keys.map(({ jwk }) => jwk) } });
    const library = startChild([process.execPath, libraryProgram, argument], {
      ...{ processor, env: { ...process.env, ...environment } },
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    });
    createInterface({ input: library.child.stdout }).on('line', onLine);
    const [ports] = await library.orEnd(once(library.child, 'message'), 'the library');
    return { ports: Object.values(ports), stop: () => endChild(library) };
  }

  /** The scope is another one than any route requires. */
  function sign(by, sub) {
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: by, aud: audience, sub, iat: now, exp: now + 3600, scope: 'read:other' };
    return signJws({ alg: 'ES256', typ: 'at+jwt', kid: key.kid }, claims, key.privateKey);
  }
}
