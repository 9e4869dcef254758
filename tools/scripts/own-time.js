// node tools/scripts/own-time.js [FOLDER], after npm run build: nanoseconds of the service's own code for one request, in a folder that was built; without one, this one.
// No sockets and no HTTP parser: the listener is called with requests that are made up. The fastest round counts, which others on
// the machine hardly change.
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { existsSync, openSync } from 'node:fs';
import { resolve } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const rounds = 120;
const warmUpRounds = 20;
const requests = 1000;

const folder = resolve(process.argv[2] ?? '.');
// Older builds have their modules in dist/.
const modules = existsSync(`${folder}/build`) ? 'build' : 'dist';
const core = existsSync(`${folder}/${modules}/core`) ? 'core/' : '';
/** @type {(path: string) => Promise<any>} */
const load = (path) => import(pathToFileURL(`${folder}/${modules}/${path}`).href);
// Older builds have them under service/.
const names = existsSync(`${folder}/${modules}/serve`)
  ? ['serve/service', 'server/observation/metrics', 'server/observation/log', 'server/settings/settings']
  : ['service/process/service', 'service/observation/metrics', 'service/observation/log', 'service/settings/settings'];
const [{ createService }, { createMetrics }, { createLog }, { readSettings }, { createTestIssuer }] = await Promise.all(
  [...names, 'testing/index'].map((path) => load(`${path}.js`)),
);

/** `AUDIT_LOG=/dev/null node tools/scripts/own-time.js`: with the audit trail. */
function readAudit() {
  const { AUDIT_LOG } = process.env;
  return AUDIT_LOG === undefined ? {} : { AUDIT_LOG, LOG_IDENTITY_SECRET: 'a secret of at least 32 bytes, yes' };
}

const issuer = createTestIssuer({ issuer: 'https://idp.test/' });
const environment = { IDP_DOMAIN: 'idp.test', IDP_AUDIENCE: issuer.audience, ADMIN_PORT: 'off', ...readAudit() };
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
/** @param {object} [more] */
const openService = (more) =>
  createService({
    settings,
    ...more,
    log: createLog({ fd: openSync('/dev/null', 'w'), style: 'json' }),
    metrics: createMetrics(),
    // Older builds open the key set itself.
    keySource: { open: async () => Object.assign(Object.create(keySet), { set: keySet }) },
    reloads: { add() {}, request() {} },
    readAgain: () => settings,
    replay: 'off',
  });
const service = await openService();

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
  method: 'GET',
  url: path,
  httpVersionMajor: 1,
  httpVersionMinor: 1,
  ...{ socket, complete: true },
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
    await setImmediate(); // the responses of promises
    service.sendReady?.(); // other builds
    const taken = Number(process.hrtime.bigint() - start) / requests;
    if (outgoing.some((answer) => answer.status !== status))
      throw new Error(`${name}: not every response was ${status}`);
    if (round >= warmUpRounds) fastest[name] = Math.min(fastest[name] ?? taken, taken);
    await setImmediate();
  }
}
for (const [name, taken] of Object.entries(fastest)) console.log(`${name}: ${taken.toFixed(0)} ns`);

const assertionsFile = 'gate/identity/assertions.js';
/** Absent in older builds, whose gates are not measured. */
const { openAssertions } = existsSync(`${folder}/${modules}/${assertionsFile}`) ? await load(assertionsFile) : {};

/** The gate by itself: a cached token, by rules that differ in what they require or send. */
async function openGates() {
  const [{ createGate }, { readRules }, { createResourceServer }] = await Promise.all(
    ['gate/gate', 'gate/rules/rules-reader', `${core}resource-server/resource-server`].map((path) =>
      load(`${path}.js`),
    ),
  );
  const when = "token.tenant == path.tenant && 'admin' in token.realm_access.roles && 'otp' in token.amr";
  const assertion = { issuer: 'https://gate.test/', audience: 'https://orders.test/', header: 'X-Auth-Assertion' };
  const pem = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' });
  const open = async (/** @type {object} */ rule, /** @type {object} */ more = {}) => {
    const issuers = { test: { issuer: issuer.issuer, audience: issuer.audience } };
    const rules = [{ id: 'tenants', path: '/t/{tenant}/**', ...rule }];
    const read = await readRules({ name: 'rules.json', text: JSON.stringify({ issuers, rules, ...more }) });
    if (read.kind === 'problems') throw new Error(JSON.stringify(read.problems));
    const server = createResourceServer({
      issuers: [{ issuer: issuer.issuer, keys: keySet }],
      audience: issuer.audience,
    });
    const keys = { signing: { setting: 'ASSERTION_KEY', pem }, published: [] };
    return createGate({ rules: read.rules, openServer: () => server, assertions: openAssertions(read.rules, keys) });
  };
  return {
    'no conditions': await open({}),
    'a condition of three clauses': await open({ when }),
    'a cached assertion': await open({}, { assertion }),
    'a new assertion': await open({ assertion: { bind: true } }, { assertion }),
  };
}

if (openAssertions !== undefined) {
  const token = `Bearer ${issuer.token({ tenant: 'acme', realm_access: { roles: ['admin'] }, amr: ['otp'] })}`;
  const headers = {
    get: (/** @type {string} */ name) => (name === 'authorization' ? token : name === 'host' ? 'api.test' : null),
  };
  const request = { method: 'GET', target: '/t/acme/orders/17', url: 'https://api.test/t/acme/orders/17', headers };
  const gates = Object.entries(await openGates());
  /** @type {Record<string, number>} */
  const least = {};
  for (let round = 0; round < rounds; round++) {
    for (const [name, gate] of gates) {
      // A round that is longer than a time slice would measure other processes too.
      const count = name === 'a new assertion' ? 20 : requests;
      const start = process.hrtime.bigint();
      for (let i = 0; i < count; i++) {
        if ((await gate.decide(request, { encrypted: true })).kind !== 'admitted') throw new Error(`${name}: refused`);
      }
      const taken = Number(process.hrtime.bigint() - start) / count;
      if (round >= warmUpRounds) least[name] = Math.min(least[name] ?? taken, taken);
    }
    await setImmediate();
  }
  const base = least['no conditions'] ?? 0;
  for (const [name, taken] of Object.entries(least)) {
    console.log(
      `decision of the gate, ${name}: ${taken.toFixed(0)} ns${taken === base ? '' : ` (+${(taken - base).toFixed(0)})`}`,
    );
  }
  const { privateKey } = (await import('node:crypto')).generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { signCompact } = await load(`${core}jose/sign.js`);
  const claims = {
    iss: 'https://gate.test/',
    aud: 'https://orders.test/',
    sub: 'user',
    iat: 1,
    exp: 61,
    rule: 'tenants',
  };
  let signature = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const start = process.hrtime.bigint();
    for (let i = 0; i < 20; i++)
      signCompact({ alg: 'ES256', typ: 'portcullis+jwt' }, claims, { alg: 'ES256', privateKey });
    signature = Math.min(signature, Number(process.hrtime.bigint() - start) / 20);
  }
  console.log(`one signature (ES256): ${signature.toFixed(0)} ns`);
}

/** Seconds since the epoch. */
const now = Date.now() / 1000;
setFlagsFromString('--expose-gc');
/** @type {() => void} */
const collect = runInNewContext('gc');
const heap = () => {
  collect();
  return process.memoryUsage().heapUsed / 2 ** 20;
};

/** The cached token of a service with a number of cutoffs, none of which matches. Older builds have no revocations. */
async function openWithCutoffs(/** @type {number} */ count) {
  const { createRevocations, readRevocations } = await load(`${core}revocation/revocations.js`);
  const before = heap();
  const revocations = createRevocations();
  const parts = readRevocations('own-time', revocations);
  const kinds = ['sub', 'sid', 'client_id', 'jti'];
  for (let i = 0; i < count; i += 1000) {
    const cutoffs = Array.from({ length: Math.min(1000, count - i) }, (_, j) => {
      // Parsed, like the values of a token: a flat string.
      const value = JSON.parse(`"${randomUUID()}"`);
      return { issuer: issuer.issuer, kind: kinds[(i + j) % 4], value, before: now, event: 'logout' };
    });
    await parts.set(cutoffs);
  }
  const grown = heap() - before;
  return { count, grown, service: await openService({ revocations }) };
}

if (existsSync(`${folder}/${modules}/revocation`)) {
  const cases = [{ count: -1, grown: 0, service }];
  for (const count of [0, 1000, 100_000, 1_000_000]) cases.push(await openWithCutoffs(count));
  const token = `Bearer ${issuer.token({ jti: randomUUID(), sid: randomUUID(), scope: 'read:messages' })}`;
  /** @type {Record<number, number>} */
  const least = {};
  for (let round = 0; round < rounds; round++) {
    for (const { count, service: each } of cases) {
      const incoming = Array.from({ length: requests }, () => makeRequest('/api/private', token));
      const outgoing = incoming.map(() => new MadeUpAnswer());
      const start = process.hrtime.bigint();
      for (const [i, request] of incoming.entries()) each.onRequest(request, outgoing[i]);
      await setImmediate();
      each.sendReady?.();
      const taken = Number(process.hrtime.bigint() - start) / requests;
      if (outgoing.some(({ status }) => status !== 200)) throw new Error('not every response was 200');
      if (round >= warmUpRounds) least[count] = Math.min(least[count] ?? taken, taken);
      await setImmediate();
    }
  }
  for (const { count, grown } of cases) {
    const name = count < 0 ? 'no revocations' : `${count.toLocaleString('en')} cutoffs, ${grown.toFixed(1)} MiB`;
    console.log(`cached token, ${name}: ${least[count]?.toFixed(0)} ns`);
  }
}
process.exit(0);
