// node tools/scripts/own-time.js, after npm run build: nanoseconds of the service's own code for one request, without sockets and
// HTTP parser: the listener is called with requests that are made up. The fastest round counts, which others on the machine
// hardly change. With AUDIT_LOG=/dev/null the service also has an audit trail.
import { randomUUID } from 'node:crypto';
import { openSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createRevocations, readRevocations } from '../../build/core/revocation/revocations.js';
import { createService } from '../../build/serve/service.js';
import { createLog } from '../../build/server/observation/log.js';
import { createMetrics } from '../../build/server/observation/metrics.js';
import { readSettings } from '../../build/server/settings/settings.js';
import { createTestIssuer } from '../../build/testing/index.js';
import { workloads as benched } from '../bench/workloads.js';

const rounds = 120;
const warmUpRounds = 20;
const requests = 1000;

const { AUDIT_LOG } = process.env;
const issuer = createTestIssuer({ issuer: 'https://idp.test/' });
const environment = {
  ...{ IDP_DOMAIN: 'idp.test', IDP_AUDIENCE: issuer.audience, ADMIN_PORT: 'off' },
  ...(AUDIT_LOG !== undefined && { AUDIT_LOG, LOG_IDENTITY_SECRET: 'a secret of at least 32 bytes, yes' }),
};
/** @type {any} */
const { settings } = readSettings({ environment, args: [] });
/** A key set that has its keys. */
const keySet = { ...issuer.keys, usable: () => true, refetch: () => undefined, fetch() {} };
/** Opens a service. Resolves with its listener. */
const openService = async (more = {}) => {
  const { http } = await /** @type {any} */ (createService)({
    ...{ settings, ...more, metrics: createMetrics(), readAgain: () => settings, replay: 'off' },
    log: createLog({ fd: openSync('/dev/null', 'w'), style: 'json' }),
    keySource: { open: async () => ({ ...keySet, set: keySet }) },
    reloads: { add() {}, request() {} },
  });
  return http.onRequest;
};

class MadeUpAnswer {
  status = 0;
  /** Like a response that waits for an earlier one: Node accepts its head and its body. */
  socket = null;
  writeHead(status) {
    this.status = status;
    return this;
  }
  end() {}
}

const socket = { remoteAddress: '127.0.0.1', encrypted: false, destroyed: false };
/** Returns a request with new strings, like the parser. */
const makeRequest = (path, ...authorization) => ({
  ...{ method: 'GET', url: path, httpVersionMajor: 1, httpVersionMinor: 1, socket, complete: true },
  rawHeaders: [
    ...['Host', '127.0.0.1:8000'],
    ...authorization.flatMap((line) => ['Authorization', Buffer.from(line, 'latin1').toString('latin1')]),
  ],
});
const mint = (claims) => `Bearer ${issuer.token({ jti: randomUUID(), scope: 'read:messages', ...claims })}`;
const malformed = benched.malformed.lines({ cold: Array.from({ length: 200 }, mint) });

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');
const heap = () => {
  collect();
  return process.memoryUsage().heapUsed / 2 ** 20;
};

/** Opens a service with a number of cutoffs, none of which matches, and measures their memory in MiB. */
async function openWithCutoffs(count) {
  const before = heap();
  const revocations = createRevocations();
  const parts = readRevocations('own-time', revocations);
  const kinds = /** @type {const} */ (['sub', 'sid', 'client_id', 'jti']);
  for (let i = 0; i < count; i += 1000) {
    const cutoffs = Array.from({ length: Math.min(1000, count - i) }, (_, j) => {
      // Parsed, like the values of a token: a flat string.
      const value = JSON.parse(`"${randomUUID()}"`);
      return { issuer: issuer.issuer, kind: kinds[(i + j) % 4], value, before: Date.now() / 1000, event: 'logout' };
    });
    await parts.set(/** @type {any} */ (cutoffs));
  }
  const name = `cached token, ${count.toLocaleString('en')} cutoffs, ${(heap() - before).toFixed(1)} MiB`;
  return { name, serve: await openService({ revocations }), status: 200, make: warm };
}

const serve = await openService();
const session = mint({ sid: randomUUID() });
const warm = () => makeRequest('/api/private', session);
const opened = [
  { name: 'open endpoint', serve, status: 200, make: () => makeRequest('/api/public') },
  { name: 'cached token', serve, status: 200, make: warm },
  {
    ...{ name: 'malformed, each new', serve, status: 401 },
    make: (i) => makeRequest('/api/private', malformed[i % malformed.length]),
  },
];
for (const count of [0, 1000, 100_000, 1_000_000]) opened.push(await openWithCutoffs(count));
const workloads = opened.map((each) => ({ ...each, least: Number.POSITIVE_INFINITY }));
for (let round = 0; round < rounds; round++) {
  for (const workload of workloads) {
    const incoming = Array.from({ length: requests }, (_, i) => workload.make(i));
    const outgoing = incoming.map(() => new MadeUpAnswer());
    const start = process.hrtime.bigint();
    for (const [i, request] of incoming.entries()) workload.serve(request, outgoing[i]);
    await setImmediate(); // the responses of promises
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
