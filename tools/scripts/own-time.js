// npm run own-time [-- FOLDER]: nanoseconds of the service's own code for one request, in a folder that was built; without one, this one.
// No sockets and no HTTP parser: the listener is called with requests that are made up. The fastest round counts, which others on
// the machine hardly change.
import { randomUUID } from 'node:crypto';
import { existsSync, openSync } from 'node:fs';
import { resolve } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

const rounds = 120;
const warmUpRounds = 20;
const requests = 1000;

const folder = resolve(process.argv[2] ?? '.');
// Older builds have their modules in dist/.
const modules = existsSync(`${folder}/build`) ? 'build' : 'dist';
/** @type {(path: string) => Promise<any>} */
const load = (path) => import(pathToFileURL(`${folder}/${modules}/${path}`).href);
// Older builds have them under service/.
const names = existsSync(`${folder}/${modules}/serve`)
  ? ['serve/service', 'server/observation/metrics', 'server/observation/log', 'server/settings/settings']
  : ['service/process/service', 'service/observation/metrics', 'service/observation/log', 'service/settings/settings'];
const [{ createService }, { createMetrics }, { createLog }, { readSettings }, { createTestIssuer }] = await Promise.all(
  [...names, 'testing/index'].map((path) => load(`${path}.js`)),
);

const issuer = createTestIssuer({ issuer: 'https://idp.test/' });
const environment = { IDP_DOMAIN: 'idp.test', IDP_AUDIENCE: issuer.audience, ADMIN_PORT: 'off' };
const { settings } = readSettings({ environment, args: [] });
const { keys } = issuer;
/** A key set that has its keys. */
const keySet = {
  find: (/** @type {string} */ kid, /** @type {string} */ alg) => keys.find(kid, alg),
  has: (/** @type {string} */ kid) => keys.has(kid),
  usable: () => true,
  refetch: () => undefined,
  fetch() {},
  get generation() {
    return keys.generation;
  },
};
const service = await createService({
  settings,
  log: createLog({ fd: openSync('/dev/null', 'w'), style: 'json' }),
  metrics: createMetrics(),
  keySource: { open: async () => keySet },
  reloads: { add() {}, request() {} },
  readAgain: () => settings,
  replay: 'off',
});

class MadeUpAnswer {
  status = 0;
  /** As of an answer that waits for an earlier one: Node takes it with its head and its body. */
  socket = null;
  writeHead(/** @type {number} */ status) {
    this.status = status;
    return this;
  }
  end() {}
}

const socket = { remoteAddress: '127.0.0.1', encrypted: false, destroyed: false };
/** Each a text of its own, as the parser makes it. @param {string} path @param {string} [authorization] */
const makeRequest = (path, authorization) => ({
  method: 'GET',
  url: path,
  httpVersionMajor: 1,
  httpVersionMinor: 1,
  socket,
  rawHeaders: [
    ...['Host', '127.0.0.1:8000'],
    ...(authorization === undefined ? [] : ['Authorization', Buffer.from(authorization, 'latin1').toString('latin1')]),
  ],
});
const tokens = Array.from(
  { length: 200 },
  () => `Bearer ${issuer.token({ jti: randomUUID(), scope: 'read:messages' })}`,
);
const spoilers = [
  (/** @type {string} */ line) => line.slice(0, line.lastIndexOf('.')),
  (/** @type {string} */ line) => line.replace('Bearer e', 'Bearer !'),
  (/** @type {string} */ line) => line.replace('.', '.!'),
];
/** @type {Record<string, { status: number, make: (index: number) => object }>} */
const workloads = {
  'open endpoint': { status: 200, make: () => makeRequest('/api/public') },
  'warm: one token': { status: 200, make: () => makeRequest('/api/private', tokens[0]) },
  'malformed, each new': {
    status: 401,
    make: (i) => makeRequest('/api/private', spoilers[i % 3]?.(tokens[i % tokens.length] ?? '')),
  },
};

/** @type {Record<string, number>} */
const fastest = {};
for (let round = 0; round < rounds; round++) {
  for (const [name, { status, make }] of Object.entries(workloads)) {
    const incoming = Array.from({ length: requests }, (_, i) => make(i));
    const outgoing = incoming.map(() => new MadeUpAnswer());
    const start = process.hrtime.bigint();
    for (const [i, request] of incoming.entries()) service.onRequest(request, outgoing[i]);
    service.sendReady();
    const taken = Number(process.hrtime.bigint() - start) / requests;
    if (outgoing.some((answer) => answer.status !== status)) throw new Error(`${name}: not every answer was ${status}`);
    if (round >= warmUpRounds) fastest[name] = Math.min(fastest[name] ?? taken, taken);
    await setImmediate();
  }
}
for (const [name, taken] of Object.entries(fastest)) console.log(`${name}: ${taken.toFixed(0)} ns`);
process.exit(0);
