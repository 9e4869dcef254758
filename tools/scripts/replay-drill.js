// Sends every DPoP proof to two instances at once, behind real nginx and with one real Redis that is killed in the
// middle and comes back empty: does no proof open the door twice, does every client get in, and does Bearer go on?
// Needs redis-server, nginx and a build.
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createTestIssuer } from 'portcullis/testing';
import { startLocalIdp } from '../../build/dev/provider/local-idp.js';
import { makeFolder } from '../shared/folder.js';
import { findFreePort, isOpen, until } from '../shared/network.js';
import { startChild } from '../shared/processes.js';
import { startRedis } from '../shared/redis.js';

const proofCount = 20_000;
/** Number of proofs sent while Redis is down. */
const outageCount = 1_000;
const atOnce = 32;
/** Seconds. */
const maxRecovery = 5;
const maxDuration = 270; // a proof lives for 300: until then a replay is refused for being one, not for its age
const audience = 'https://api.example.com/';
const path = '/gate/api/private';

const folder = makeFolder('drill');
setTimeout(() => giveUp(`The drill is not done after ${maxDuration} s.`), maxDuration * 1000);

const client = createTestIssuer().dpopClient();

const idp = await startLocalIdp({ port: 0, audience, customClaim: 'claim', cacheFolder: join(folder, 'idp') });
const bound = await idp.token({ jkt: client.jkt });
const free = await idp.token();

const redis = await startRedis(folder, { processor: undefined });
const instances = await Promise.all([startInstance(), startInstance()]);
const edgePort = await findFreePort();
// Two edges with one name and one port, like two addresses of one DNS name; each has its own instance.
const edges = ['127.0.0.1', '127.0.0.2'];
await Promise.all(edges.map((address, index) => startEdge(address, instances[index])));
const url = `https://localhost:${edgePort}${path}`;
const agent = new Agent({ keepAlive: true, ca: readFileSync(idp.certificateFile), servername: 'localhost' });

await recover();
const counts = { unavailable: 0, unexpected: 0, bearer: 0, bearerFailures: 0 };
let isOver = false;
const bearerDone = keepAskingAsBearer();
const proofs = Array.from({ length: proofCount }, () => ({ text: '', accepts: 0 }));
const half = proofCount / 2;
let killed;
await forEachAtOnce(proofs.slice(0, half + outageCount), (proof, index) => {
  if (index === half) killed = redis.kill();
  return spend(proof);
});
await killed;
await redis.restart();
const recovery = await recover();
await forEachAtOnce(proofs.slice(half + outageCount), spend);
// A proof that was refused as unavailable was not recorded: its client creates a new one.
const unjudged = proofs.filter(({ accepts }) => accepts === 0);
for (const proof of unjudged) proof.text = '';
await forEachAtOnce(unjudged, spend);

// Redis has lost the first half; both instances must still refuse it.
const again = { 200: 0, 401: 0, 503: 0 };
await forEachAtOnce(proofs, async (proof, index) => {
  const { status } = await send(edges[index % edges.length], dpop(proof.text));
  if (status in again) again[status]++;
  else counts.unexpected++;
});
isOver = true;
await bearerDone;

const twice = proofs.filter(({ accepts }) => accepts > 1).length;
const never = proofs.filter(({ accepts }) => accepts === 0).length;
/** Counts, and their maximum. */
const rows = /** @type {[what: string, value: number, most?: number][]} */ ([
  ['proofs, each sent to both instances at once', proofCount],
  ['accepted exactly once', proofCount - twice - never],
  ['accepted twice', twice, 0],
  ['accepted never', never, 0],
  ['responses 503 while Redis was down', counts.unavailable],
  ['made anew after that', unjudged.length],
  ['all sent once more at the end: accepted', again[200], 0],
  ['  refused as used before (401)', again[401]],
  ['  refused as older than the memory of Redis (503)', again[503]],
  ['responses other than 200, 401 and a proper 503', counts.unexpected, 0],
  ['Bearer calls all along', counts.bearer],
  ['Bearer failures', counts.bearerFailures, 0],
  ['seconds from the return of Redis to DPoP at both', Number(recovery.toFixed(2)), maxRecovery],
]);
for (const [what, value, most] of rows) {
  console.log(`${what.padEnd(54)} ${String(value).padStart(7)}${most === undefined ? '' : `   at most ${most}`}`);
}
await idp.close();
const isWithin = rows.every(([, value, most]) => most === undefined || value <= most);
// Without these the drill has not shown what it is for.
const isTelling = [counts.unavailable, counts.bearer, again[401], again[503]].every((count) => count > 0);
process.exit(isWithin && isTelling ? 0 : 1);

function giveUp(reason) {
  console.error(reason);
  process.exit(1);
}

function dpop(proof) {
  return { authorization: `DPoP ${bound}`, dpop: proof };
}

/** Sends a proof, made now if it is new, to both at once. */
async function spend(proof) {
  proof.text ||= client.proof({ url, token: bound });
  const answers = await Promise.all(edges.map((edge) => send(edge, dpop(proof.text))));
  for (const { status, headers } of answers) {
    const isProper = headers['retry-after'] !== undefined && headers['www-authenticate'] === undefined;
    if (status === 200) proof.accepts++;
    else if (status === 503 && isProper) counts.unavailable++;
    else if (status !== 401) counts.unexpected++;
  }
}

/** One GET through an edge; status 0 where the connection broke. */
function send(host, headers) {
  return new Promise((resolve) => {
    const options = { host, port: edgePort, path, agent, headers: { host: `localhost:${edgePort}`, ...headers } };
    const sent = request(options, (response) => {
      response.once('end', () => resolve({ status: response.statusCode, headers: response.headers })).resume();
    });
    sent.once('error', () => resolve({ status: 0, headers: {} })).end();
  });
}

async function keepAskingAsBearer() {
  while (!isOver) {
    const answers = await Promise.all(edges.map((edge) => send(edge, { authorization: `Bearer ${free}` })));
    counts.bearer += answers.length;
    counts.bearerFailures += answers.filter(({ status }) => status !== 200).length;
    await sleep(5);
  }
}

/** Seconds until both instances accept a new proof each. */
async function recover() {
  for (const from = performance.now(); ; await sleep(20)) {
    const answers = await Promise.all(edges.map((edge) => send(edge, dpop(client.proof({ url, token: bound })))));
    const seconds = (performance.now() - from) / 1000;
    if (answers.every(({ status }) => status === 200)) return seconds;
    if (seconds > 2 * maxRecovery) giveUp('DPoP did not come back.');
  }
}

async function forEachAtOnce(items, act) {
  const entries = items.entries();
  const work = async () => {
    for (const [index, item] of entries) await act(item, index);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

function start(words, options = {}) {
  const PATH = `${process.env.PATH}:/usr/sbin:/usr/local/sbin`;
  const running = startChild(words, { stdio: 'ignore', ...options, env: { PATH, ...options.env } });
  running.ended.catch(() => giveUp(`${words[0]} cannot be started: is it installed?`));
  return running;
}

async function startInstance() {
  const env = {
    IDP_DOMAIN: idp.domain,
    IDP_AUDIENCE: audience,
    NODE_EXTRA_CA_CERTS: idp.certificateFile,
    REPLAY_STORE: redis.url,
    TRUST_PROXY: '127.0.0.1',
  };
  const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
  const args = ['serve', '--host', '127.0.0.1', '--port', '0', '--admin-port', 'off'];
  const { child } = start([process.execPath, main, ...args], { env, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const [message] = await once(child, 'message');
  return new URL(message.url).host;
}

/** nginx as deploy/proxies has it, before one instance. */
async function startEdge(address, upstream) {
  const own = join(folder, `edge-${address}`);
  mkdirSync(own);
  const values = {
    HOST: 'localhost',
    PORT: edgePort,
    ADDRESS: address,
    PREFIX: '/gate',
    CERTIFICATE: idp.certificateFile,
    KEY: join(dirname(idp.certificateFile), 'key.pem'),
    UPSTREAM_1: upstream,
    UPSTREAM_2: upstream,
    FOLDER: own,
  };
  const template = readFileSync(new URL('../../deploy/proxies/nginx.conf', import.meta.url), 'utf8');
  const text = template.replace(/@([A-Z_\d]+)@/g, (placeholder, name) => values[name] ?? placeholder);
  writeFileSync(join(own, 'nginx.conf'), text);
  start(['nginx', '-e', join(own, 'error.log'), '-c', join(own, 'nginx.conf'), '-g', 'daemon off;']);
  await until(() => isOpen(edgePort, address), 'nginx does not listen');
}
