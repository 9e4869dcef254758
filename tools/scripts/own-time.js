// node tools/scripts/own-time.js [FOLDER], after npm run build: nanoseconds of the service's own code for one request, in a folder that was built; without one, this one.
// No sockets and no HTTP parser: the listener is called with requests that are made up. The fastest round counts, which others on
// the machine hardly change. With AUDIT_LOG=/dev/null the service also has an audit trail.
import { randomUUID } from 'node:crypto';
import { existsSync, openSync } from 'node:fs';
import { resolve } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const rounds = 120;
const warmUpRounds = 20;
const requests = 1000;

const folder = resolve(process.argv[2] ?? '.', 'build');
/** @type {(path: string) => Promise<any>} */
const load = (path) => import(pathToFileURL(`${folder}/${path}.js`).href);
const [{ createService }, { createMetrics }, { createLog }, { readSettings }, { createTestIssuer }] = await Promise.all(
  [
    'serve/service',
    'server/observation/metrics',
    'server/observation/log',
    'server/settings/settings',
    'testing/index',
  ].map(load),
);
// Older builds have it at the top.
const { createRevocations, readRevocations } = await load(
  `${existsSync(`${folder}/core`) ? 'core/' : ''}revocation/revocations`,
);

const { AUDIT_LOG } = process.env;
const issuer = createTestIssuer({ issuer: 'https://idp.test/' });
const environment = {
  ...{ IDP_DOMAIN: 'idp.test', IDP_AUDIENCE: issuer.audience, ADMIN_PORT: 'off' },
  ...(AUDIT_LOG !== undefined && { AUDIT_LOG, LOG_IDENTITY_SECRET: 'a secret of at least 32 bytes, yes' }),
};
const { settings } = readSettings({ environment, args: [] });
/** A key set that has its keys. */
const keySet = {
  find: (/** @type {string} */ kid, /** @type {string} */ alg) => issuer.keys.find(kid, alg),
  has: (/** @type {string} */ kid) => issuer.keys.has(kid),
  usable: () => true,
  refetch: () => undefined,
  fetch() {},
  generation: issuer.keys.generation,
};
/** @param {object} [more] */
const openService = (more) =>
  createService({
    settings,
    ...more,
    log: createLog({ fd: openSync('/dev/null', 'w'), style: 'json' }),
    metrics: createMetrics(),
    keySource: { open: async () => Object.assign(Object.create(keySet), { set: keySet }) },
    reloads: { add() {}, request() {} },
    readAgain: () => settings,
    replay: 'off',
  });

class MadeUpAnswer {
  status = 0;
  /** Like a response that waits for an earlier one: Node accepts its head and its body. */
  socket = null;
  writeHead(/** @type {number} */ status) {
    this.status = status;
    return this;
  }
  end() {}
}

const socket = { remoteAddress: '127.0.0.1', encrypted: false, destroyed: false };
/** Returns a request with new strings, like the parser. @param {string} path @param {string} [authorization] */
const makeRequest = (path, authorization) => ({
  ...{ method: 'GET', url: path, httpVersionMajor: 1, httpVersionMinor: 1, socket, complete: true },
  rawHeaders: [
    ...['Host', '127.0.0.1:8000'],
    ...(authorization === undefined ? [] : ['Authorization', Buffer.from(authorization, 'latin1').toString('latin1')]),
  ],
});
const mint = (/** @type {object} */ claims) =>
  `Bearer ${issuer.token({ jti: randomUUID(), scope: 'read:messages', ...claims })}`;
const tokens = Array.from({ length: 200 }, () => mint({}));
const spoilers = [
  (/** @type {string} */ line) => line.slice(0, line.lastIndexOf('.')),
  (/** @type {string} */ line) => line.replace('Bearer e', 'Bearer !'),
  (/** @type {string} */ line) => line.replace('.', '.!'),
];

setFlagsFromString('--expose-gc');
/** @type {() => void} */
const collect = runInNewContext('gc');
const heap = () => {
  collect();
  return process.memoryUsage().heapUsed / 2 ** 20;
};

/** Opens a service with a number of cutoffs, none of which matches, and measures their memory in MiB. */
async function openWithCutoffs(/** @type {number} */ count) {
  const before = heap();
  const revocations = createRevocations();
  const parts = readRevocations('own-time', revocations);
  const kinds = ['sub', 'sid', 'client_id', 'jti'];
  for (let i = 0; i < count; i += 1000) {
    const cutoffs = Array.from({ length: Math.min(1000, count - i) }, (_, j) => {
      // Parsed, like the values of a token: a flat string.
      const value = JSON.parse(`"${randomUUID()}"`);
      return { issuer: issuer.issuer, kind: kinds[(i + j) % 4], value, before: Date.now() / 1000, event: 'logout' };
    });
    await parts.set(cutoffs);
  }
  const grown = heap() - before;
  return {
    name: `${count.toLocaleString('en')} cutoffs, ${grown.toFixed(1)} MiB`,
    service: await openService({ revocations }),
  };
}

const service = await openService();
const session = mint({ sid: randomUUID() });
const warm = () => makeRequest('/api/private', session);
/** @type {{ name: string, service: any, status: number, make: (index: number) => object, least: number }[]} */
const workloads = [
  { name: 'open endpoint', service, status: 200, make: () => makeRequest('/api/public') },
  { name: 'cached token', service, status: 200, make: warm },
  {
    ...{ name: 'malformed, each new', service, status: 401 },
    make: (/** @type {number} */ i) => makeRequest('/api/private', spoilers[i % 3]?.(tokens[i % tokens.length] ?? '')),
  },
].map((each) => ({ ...each, least: Number.POSITIVE_INFINITY }));
for (const count of [0, 1000, 100_000, 1_000_000]) {
  const opened = await openWithCutoffs(count);
  workloads.push({
    ...opened,
    name: `cached token, ${opened.name}`,
    status: 200,
    make: warm,
    least: Number.POSITIVE_INFINITY,
  });
}
for (let round = 0; round < rounds; round++) {
  for (const workload of workloads) {
    const incoming = Array.from({ length: requests }, (_, i) => workload.make(i));
    const outgoing = incoming.map(() => new MadeUpAnswer());
    const start = process.hrtime.bigint();
    for (const [i, request] of incoming.entries()) workload.service.onRequest(request, outgoing[i]);
    await setImmediate(); // the responses of promises
    workload.service.sendReady?.(); // other builds
    const taken = Number(process.hrtime.bigint() - start) / requests;
    if (outgoing.some(({ status }) => status !== workload.status)) {
      throw new Error(`${workload.name}: not every response was ${workload.status}`);
    }
    if (round >= warmUpRounds) workload.least = Math.min(workload.least, taken);
    await setImmediate();
  }
}
for (const { name, least } of workloads) console.log(`${name}: ${least.toFixed(0)} ns`);
process.exit(0);
