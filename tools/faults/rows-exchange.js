// Token exchange under load: number of requests to the provider, and the token that an upstream gets.
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort, holdsWithin, listen, stop } from '../shared/network.js';
import { openGate, revoke, steadyRules } from './gate.js';
import { startService } from './service.js';

const callers = 1000;
const path = '/exchanged';

const readSubject = (jwt) => JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString()).sub;

/** A token endpoint that counts the exchanges of each caller, and can be down. */
async function startEndpoint({ certificate: cert, key }) {
  /** Exchanges by `sub`. */
  const counts = new Map();
  let held = { subject: undefined, arrived: () => {}, release: Promise.resolve() };
  const server = createTlsServer({ cert, key }, async (request, response) => {
    const subject = readSubject(new URLSearchParams(await text(request)).get('subject_token') ?? '');
    counts.set(subject, (counts.get(subject) ?? 0) + 1);
    if (subject === held.subject) {
      held.arrived();
      await held.release;
    }
    const issued = 'urn:ietf:params:oauth:token-type:access_token';
    const token = Buffer.from(`${subject}#${counts.get(subject)}`).toString('base64url');
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({ access_token: token, token_type: 'Bearer', issued_token_type: issued, expires_in: 3600 }),
    );
  });
  // A port that no outgoing connection takes while the endpoint is down.
  const port = await findFreePort();
  await listen(server, port);
  return {
    url: `https://localhost:${port}/token`,
    counts,
    /** Holds the response for a caller. Resolves with `release` once its request has arrived. */
    hold(subject) {
      let release = () => {};
      const released = new Promise((resolve) => {
        release = () => resolve(undefined);
      });
      return new Promise((resolve) => {
        held = { subject, arrived: () => resolve(release), release: released };
      });
    },
    down: () => stop(server),
    up: () => listen(server, port),
  };
}

/** An upstream that compares the token of each request with its caller. */
function createUpstream() {
  const seen = { requests: 0, wrong: 0, callers: new Set() };
  const server = createServer(({ url, headers }, outgoing) => {
    if (url === path) {
      seen.requests++;
      const subject = headers['x-auth-subject'];
      const [, token = ''] = headers.authorization?.split(' ') ?? [];
      if (!Buffer.from(token, 'base64url').toString().startsWith(`${subject}#`)) seen.wrong++;
      seen.callers.add(subject);
    }
    outgoing.end('{}');
  });
  return { server, seen };
}

const exchange = {
  name: 'gate-exchange',
  title: ({ quick }) =>
    `the gate as the proxy: tokens of 1 000 callers are exchanged, the token endpoint is down for ${quick ? '5 s' : 'a minute'}`,
  processes: 2,
  async open(bench) {
    const secretFile = join(bench.folder, 'exchange-secret');
    writeFileSync(secretFile, 'secret');
    const endpoint = await startEndpoint(bench.identity);
    const upstream = createUpstream();
    const client = { issuer: 'staff', clientId: 'gate', clientSecretFile: secretFile };
    const gate = await openGate(bench, 'exchange', {
      upstream: upstream.server,
      rules: [...steadyRules, { id: 'exchanged', path, exchange: 'orders' }],
      exchanges: { orders: { ...client, endpoint: endpoint.url, audience: 'https://orders.internal/' } },
    });
    return { ...gate, endpoint, upstream, stop: () => Promise.all([gate.stop(), endpoint.down()]) };
  },
  async play(scene) {
    const { endpoint, upstream } = scene.setup;
    const { counts } = endpoint;
    const second = await startSecond(scene);
    const known = { type: 'fixed', path, tokens: scene.mintMany(callers) };
    const newTokens = Array.from({ length: 50 }, (_, i) => scene.mint({ sub: `new|${i}` }));
    const strangers = { type: 'fixed', path, tokens: newTokens };
    const rate = Math.min(callers, Math.round(scene.undisturbed.rate * 0.5));
    const send = (stream, source, more = {}) => scene.sendKind(stream, { source, rate, connections: 64, ...more });
    const sum = () => [...counts.values()].reduce((total, count) => total + count, 0);
    const refused = ({ statuses }) => statuses[503] ?? 0;
    await scene.begin({ share: 0.05 });
    // On a busy host an exchange may take longer than its 3 s.
    await send('callers', known, { expect: [200, 503] });
    await scene.sleep(scene.pace(10, 3));
    await holdsWithin(30, () => counts.size === callers, 100);
    const first = await scene.stopStream('callers');
    scene.demand(counts.size === callers, `exchanges of ${counts.size} callers`);
    scene.demand(sum() <= callers + refused(first), `${sum()} exchanges, and ${refused(first)} responses with 503`);

    await endpoint.down();
    await send('cached callers', known, { expect: refused(first) > 0 ? [200, 503] : [200] });
    await send('new callers', strangers, { rate: 20, expect: [503] });
    await scene.sleep(scene.pace(60, 5));
    await scene.load.expect('new callers', { 'new callers': [200, 503] });
    await endpoint.up();
    scene.faultEnds();
    await scene.sleep(scene.pace(5, 3));
    const reports = [await scene.stopStream('cached callers'), await scene.stopStream('new callers')];
    const late = refused(first) + refused(reports[0]);
    scene.demand(reports[1].statuses[200] > 0, 'no exchange after the endpoint was up again');
    scene.demand(sum() <= callers + newTokens.length + late, `${sum()} exchanges after the endpoint was down`);

    await revokeBetween(scene, 'between', counts);
    await send('second gate', known, { port: second.port });
    await scene.sleep(scene.pace(5, 3));
    const { answered } = await scene.stopStream('second gate');
    const most = Math.max(...counts.values());
    scene.demand(late > 0 || most === 2, `two gates, and ${most} exchanges of one caller`);
    scene.demand(
      upstream.seen.wrong === 0,
      `${upstream.seen.wrong} requests had the token of another caller, or of a client`,
    );
    scene.note(
      `at ${rate} requests a second, ${callers} callers made ${callers} exchanges for ${first.answered} requests; while the endpoint was down, ` +
        `their tokens were used for ${reports[0].answered} requests and ${refused(reports[1])} requests of others got 503; a token that was revoked in between never ` +
        `arrived; a second gate made its own exchanges, one for each caller, for ${answered} requests`,
    );
  },
};

/** Starts a second gate with the same rules. The load of the scene stays on the first. */
async function startSecond(scene) {
  const { bench, setup, provider, issuer } = scene;
  const { environment, words } = setup;
  const second = await startService({ provider, identity: bench.identity, environment, words: words(issuer) });
  scene.services.unshift(second);
  return second;
}

/** Revokes a caller while its exchange is in flight. */
async function revokeBetween(scene, sub, counts) {
  const { endpoint, upstream } = scene.setup;
  const token = scene.mint({ sub });
  const holding = endpoint.hold(sub);
  const first = scene.request(path, token);
  const release = await holding;
  const { status } = await revoke(scene, { sub });
  release();
  scene.demand(status === 204, `the revocation got ${status}`);
  const statuses = [await first, await scene.request(path, token)];
  await sleep(100);
  scene.demand(statuses.join() === '401,401', `a token that was revoked during its exchange got ${statuses.join()}`);
  scene.demand(counts.get(sub) === 1 && !upstream.seen.callers.has(sub), 'a revoked caller reached the upstream');
}

export const exchangeRows = [exchange];
