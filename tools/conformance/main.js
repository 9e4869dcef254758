// Runs the conformance scenarios of MCP for servers against a server without OAuth: directly, and protected by the library and
// by the gate, with Bearer and DPoP. The scenarios send no token, so a relay adds it. Each check that passes directly must
// pass with protection. Needs Linux on x64 and a build.
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, request as requestHttp } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler } from '@modelcontextprotocol/server';
import { startLocalIdp } from '../../build/dev/provider/local-idp.js';
import { createMcpAuth } from '../../dist/adapters/mcp.js';
import { createKeySet, createResourceServer } from '../../dist/index.js';
import { createTestIssuer } from '../../dist/testing/index.js';
import { installPackages } from '../bench/install.js';
import { makeFolder } from '../shared/folder.js';
import { findFreePort, isOpen, listen, until } from '../shared/network.js';
import { endChild, startChild } from '../shared/processes.js';
import { createEverything } from './everything.js';

const here = fileURLToPath(new URL('.', import.meta.url));
installPackages(here);
const node = join(here, 'node_modules/node22-linux-x64/bin/node');
const cli = join(here, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const revisions = ['2025-11-25', '2026-07-28'];
/**
 * Checks that differ by intent: a revision without `resources/subscribe` requires 404 for it, and a request without a URI has no
 * entry, so it gets 403 before the server sees it.
 */
const intended = new Set(
  ['subscribe', 'unsubscribe'].map((name) => `sep-2575-http-server-method-not-found-404-resources-${name}`),
);
/** The resource of all tokens. The scenarios do not read the metadata. */
const resource = 'http://localhost:9/mcp';
const scope = 'read:messages';
const folder = makeFolder('conformance');

const serveHttp = async (listener) => `http://127.0.0.1:${await listen(createServer(listener))}`;

const handle = toNodeHandler(createMcpHandler(createEverything));
/** Refuses other hosts, as a server on loopback must because of DNS rebinding. */
const serve = (incoming, outgoing) => {
  const { host, origin = `http://${host}` } = incoming.headers;
  const isLocal = [`http://${host}`, origin].every((url) => /^https?:\/\/(?:localhost|127\.0\.0\.1)(?::|$)/.test(url));
  if (isLocal) void handle(incoming, outgoing, incoming.body);
  else outgoing.writeHead(403).end();
};
const direct = await serveHttp(serve);

const idp = await startLocalIdp({
  port: 0,
  audience: resource,
  customClaim: 'claim',
  cacheFolder: join(folder, 'idp'),
});
const holder = createTestIssuer().dpopClient();
const bearer = await idp.token({ scope });
const bound = await idp.token({ scope, jkt: holder.jkt });

const keys = createKeySet({ issuer: idp.issuer, ca: readFileSync(idp.certificateFile, 'utf8') });
const entries = { tools: { '*': { scopes: [scope] } }, resources: { '*': {}, 'test://*': {} }, prompts: { '*': {} } };
const { protect } = createMcpAuth(
  createResourceServer({ issuers: [{ issuer: idp.issuer, keys }], audience: resource }),
  { resource, authorizationServers: [idp.issuer], policy: { scopes: [scope] }, ...entries },
);
const library = await serveHttp((incoming, outgoing) => protect(incoming, outgoing, () => serve(incoming, outgoing)));

const rules = {
  issuers: { main: { issuer: idp.issuer, audience: resource } },
  rules: [{ id: 'mcp', path: '/mcp', scopes: [scope], mcp: entries }],
};
const rulesFile = join(folder, 'rules.json');
writeFileSync(rulesFile, JSON.stringify(rules));
const port = await findFreePort();
const started = startChild([process.execPath, 'dist/cli/main.js', 'gate', '--mcp', '--rules', rulesFile], {
  env: {
    ...{ PATH: process.env.PATH, NODE_EXTRA_CA_CERTS: idp.certificateFile, PORT: String(port) },
    ...{ UPSTREAM: direct, DPOP_BIND_ALLOWED: 'true' },
  },
  stdio: ['ignore', 'ignore', 'inherit'],
});
await until(() => isOpen(port), 'The gate does not start.');
const gate = `http://127.0.0.1:${port}`;

/** Forwards each request with the headers that `authorize` returns. */
const relay = (target, authorize) =>
  serveHttp((incoming, outgoing) => {
    const { method, url, rawHeaders } = incoming;
    const headers = [...rawHeaders, ...authorize(`http://${incoming.headers.host}${url}`, method)];
    const { hostname, port: to } = new URL(target);
    const forwarded = requestHttp({ hostname, port: to, path: url, method, headers, agent: false }, (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.rawHeaders);
      response.pipe(outgoing);
    });
    forwarded.on('error', () => outgoing.destroy());
    outgoing.on('close', () => forwarded.destroy());
    incoming.pipe(forwarded);
  });
const asBearer = () => ['Authorization', `Bearer ${bearer}`];
const asDpop = (url, method) => {
  const { authorization, dpop } = holder.headers({ url, method, token: bound });
  return ['Authorization', authorization, 'DPoP', dpop];
};
const ways = {
  direct: await relay(direct, () => []),
  'library, Bearer': await relay(library, asBearer),
  'library, DPoP': await relay(library, asDpop),
  'gate, Bearer': await relay(gate, asBearer),
  'gate, DPoP': await relay(gate, asDpop),
};

/** Runs the scenarios of one revision. Returns the statuses of the checks of each scenario. */
async function run(url, revision) {
  const output = mkdtempSync(join(folder, 'results-'));
  const args = ['server', '--url', `${url}/mcp`, '--suite', 'all', '--spec-version', revision, '--output-dir', output];
  const child = startChild([node, cli, ...args], { stdio: 'ignore' });
  await child.ended;
  return new Map(
    readdirSync(output).map((name) => [
      name.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, ''),
      JSON.parse(readFileSync(join(output, name, 'checks.json'), 'utf8')),
    ]),
  );
}

const passed = (checks) => new Set(checks.filter(({ status }) => status === 'SUCCESS').map(({ id }) => id));
const failed = (checks) => checks.filter(({ status }) => status === 'FAILURE');
let lost = 0;
for (const revision of revisions) {
  const results = {};
  for (const [way, url] of Object.entries(ways)) results[way] = await run(url, revision);
  const { direct: plain, ...shielded } = results;
  console.log(`\nRevision ${revision}: ${plain.size} scenarios`);
  for (const [scenario, checks] of [...plain].toSorted()) {
    const expected = passed(checks);
    const worse = Object.entries(shielded).flatMap(([way, all]) => {
      const held = passed(all.get(scenario) ?? []);
      return [...expected].filter((id) => !held.has(id) && !intended.has(id)).map((id) => `${way}: ${id}`);
    });
    lost += worse.length;
    const [first] = failed(checks);
    const same = first === undefined ? 'passes' : `fails without protection too: ${first.errorMessage}`;
    console.log(`${scenario}: ${worse.length > 0 ? `WORSE ${worse.join(', ')}` : same}`.slice(0, 200));
  }
}
console.log(`\n${lost} checks pass without protection and fail with it`);
await endChild(started);
keys.close();
await idp.close();
process.exit(lost === 0 ? 0 : 1);
