// What a decision of the gate costs as its rules grow: in this process, with a token that was seen before.

import { openExchange } from '../../build/core/exchange/exchange.js';
import { createExchangeCache } from '../../build/core/exchange/exchange-cache.js';
import { createResourceServer } from '../../build/core/resource-server/resource-server.js';
import { createGate } from '../../build/gate/gate.js';
import { readRules } from '../../build/gate/rules/rules-reader.js';
import { createTestIssuer } from '../../build/testing/index.js';
import { savePart } from './publish.js';
import { formatRules } from './report.js';

const testIssuer = createTestIssuer({ issuer: 'https://idp.example/', audience: 'https://api.example.com/' });
const { issuer, audience } = testIssuer;
/** Members of the rule that decides. */
const more = {
  'condition on the token': { when: "token.tenant == 'acme' && 'otp' in token.amr && token.level >= 3" },
  'condition on the request': {
    when: "token.tenant == 'acme' && request.method == 'GET' && request.headers.accept == '*/*' && path.order != '0'",
  },
  'cached exchange': { exchange: 'orders' },
};
/** The first row is what the others are compared with. */
const sizes = [
  ...[1, 100].flatMap((upstreams) => [1, 100, 10_000].map((size) => ({ size, upstreams, condition: undefined }))),
  ...Object.keys(more).map((condition) => ({ size: 1, upstreams: 1, condition })),
];
const claims = { scope: 'read:orders', tenant: 'acme', amr: ['pwd', 'otp'], level: 3 };
const token = testIssuer.token(claims);

/** A provider in this process: its metadata, and a token. */
async function issue(url) {
  const type = 'urn:ietf:params:oauth:token-type:access_token';
  return Response.json(
    String(url).includes('.well-known')
      ? { issuer, token_endpoint: `${issuer}token` }
      : { access_token: 'a'.repeat(900), issued_token_type: type, token_type: 'Bearer', expires_in: 3600 },
  );
}

/** The rule that decides lies in the middle of the file; the others have paths that begin as its path does. */
async function openGate({ size, upstreams, condition }) {
  const rules = Array.from({ length: size }, (_, i) => ({
    id: `rule-${i}`,
    path: i === size >> 1 ? '/orders/{order}/lines/**' : `/orders/${i}/items/${i}`,
    scopes: ['read:orders'],
    ...more[condition],
    upstream: `upstream-${i % upstreams}`,
  }));
  const addresses = Array.from({ length: upstreams }, (_, i) => [`upstream-${i}`, `http://127.0.0.1:${3000 + i}`]);
  const text = JSON.stringify({
    issuers: { a: { issuer, audience } },
    upstreams: Object.fromEntries(addresses),
    exchanges: {
      orders: { issuer: 'a', clientId: 'gate', clientSecretFile: '/not/read', audience: 'https://orders.example/' },
    },
    rules,
  });
  const startedAt = performance.now();
  const result = await readRules({ name: 'rules.json', text });
  if (result.kind === 'problems') throw new Error(JSON.stringify(result.problems));
  const server = createResourceServer({ issuers: [testIssuer], audience });
  const exchange = openExchange(
    { issuer, clientId: 'gate', clientSecret: 'secret', fetch: issue },
    createExchangeCache(),
  );
  const target = exchange.prepare({ audience: 'https://orders.example/' });
  const orders = { take: (access) => exchange.take(access, target), discard: () => false };
  const gate = createGate({
    ...{ rules: result.rules, openServer: () => server, exchanges: new Map([['orders', orders]]) },
  });
  return {
    size,
    upstreams,
    condition,
    gate,
    loaded: performance.now() - startedAt,
    costs: /** @type {number[]} */ ([]),
  };
}

const lines = new Map([
  ['authorization', `Bearer ${token}`],
  ['host', 'api.example.com'],
  ['accept', '*/*'],
]);

function request(i) {
  const target = `/orders/${i % 1000}x/lines/${i % 7}?page=1`;
  const headers = { get: (name) => lines.get(name) ?? null, entries: () => lines.entries() };
  return { method: 'GET', target, url: `https://api.example.com${target}`, headers };
}

/** Decisions a second by the number of rules, one a round; and the milliseconds of loading the file. */
export async function bench({ quick, write, rounds = quick ? 5 : 15 }) {
  const calls = quick ? 20_000 : 60_000;
  const opened = [];
  for (const each of sizes) opened.push(await openGate(each));
  const connection = { encrypted: true };
  for (let round = 0; round <= rounds; round++) {
    for (const { gate, costs, condition } of opened) {
      const isExchanged = condition === 'cached exchange';
      const before = process.cpuUsage();
      for (let i = 0; i < calls; i++) {
        const decision = await gate.decide(request(i), connection);
        if (decision.kind !== 'admitted') throw new Error('A valid request was refused.');
        if (isExchanged !== (decision.exchanged !== undefined)) throw new Error('The wrong token is sent.');
        if (!gate.rules.upstreams.has(decision.rule.upstream)) throw new Error('The rule has no upstream.');
      }
      const { user, system } = process.cpuUsage(before);
      // The first round is the warm-up.
      if (round > 0) costs.push((user + system) / calls);
    }
  }
  const part = {
    date: new Date().toISOString(),
    rows: opened.map(({ gate: _, ...row }) => row),
  };
  console.log(`\n${formatRules(part)}\n`);
  if (write && !quick) savePart('rules', part);
  return true;
}
