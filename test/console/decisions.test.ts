import { createServer } from 'node:http';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { explainDetail } from '../../src/cli/explain/explained-id.ts';
import { listen, stop } from '../../tools/shared/network.js';
import { findDecision, openConsole, openStream, readDecisions, useConsole } from '../support/console-client.ts';
import { createDpopClient } from '../support/dpop-client.ts';
import { openGate } from '../support/gate-process.ts';
import { type Answer, send } from '../support/http-client.ts';
import { passStart } from '../support/pass-start.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { bearer, findVariant, openVariant } from '../support/variant-service.ts';

const provider = await useTestProvider();

const idOf = (answer: Answer): string => answer.headers.get('x-request-id') ?? '';

/** Every 16 characters in a row of a text. */
function windowsOf(secret: string): readonly string[] {
  return Array.from({ length: Math.max(0, secret.length - 15) }, (_, at) => secret.slice(at, at + 16));
}

describe('the decisions of serve', async () => {
  const { service, admin, cookie } = await useConsole((environment) =>
    openVariant(findVariant('a'), provider, environment),
  );
  const stream = await openStream(admin, cookie[1]);
  afterAll(() => stream.close());
  const sub = 'auth0|a-person-of-the-test';

  const call = (path: string, token: string, ...headers: string[]) =>
    send(service.url, path, { headers: [...bearer(token), ...headers] });

  it('a refused call: streamed with its reason, and every check on request', async () => {
    const answer = await call('/api/private', await provider.sign({ aud: 'https://api.example.test', sub }));
    expect(answer.status).toBe(401);
    await stream.until(idOf(answer));
    const { decision, explanation, facts, refusal } = await findDecision(admin, idOf(answer), cookie);
    const refused = { status: 401, outcome: 'refused', reason: 'invalid_audience' };
    expect(decision).toMatchObject({ method: 'GET', route: '/api/private', ...refused });
    expect(explanation?.checks.find(({ verdict }) => verdict === 'fail')).toMatchObject({
      id: 'aud',
      reason: 'invalid_audience',
      seen: 'https://api.example.test',
      causes: [{ id: 'audience_slash', certainty: 'certain' }],
    });
    expect(explanation?.checks.find(({ id }) => id === 'signature')?.verdict).toBe('pass');
    expect(JSON.stringify(explanation)).toContain('IDP_AUDIENCE');
    expect(Object.fromEntries(facts)).toMatchObject({ received: 'https://api.example.test' });
    expect(refusal?.fix).toContain('IDP_AUDIENCE');
  });

  it('an allowed call: found by its own id, every check passes', async () => {
    const answer = await call('/api/private-scoped', await provider.sign({ sub }), 'X-Request-Id', `allowed`);
    expect(answer.status).toBe(200);
    await stream.until(`allowed`);
    const { decision, explanation } = await findDecision(admin, `allowed`, cookie);
    expect(decision).toMatchObject({ status: 200, outcome: 'allowed', scheme: 'Bearer' });
    expect(explanation?.verdict).toBe('admitted');
    const verdicts = Object.fromEntries(explanation?.checks.map(({ id, verdict }) => [id, verdict]) ?? []);
    const expected = { certificate_presented: 'skipped', certificate: 'skipped', unbound_scheme: 'pass' };
    expect(verdicts).toMatchObject(expected);
  });

  it('a refused request whose X-Request-Id is the id of another request → the id finds the other', async () => {
    const other = idOf(await send(service.url, '/api/nowhere'));
    await stream.until(other);
    const hiding = await send(service.url, '/api/private', { headers: ['X-Request-Id', other] });
    await stream.until(idOf(hiding));
    expect((await findDecision(admin, other, cookie)).decision).toMatchObject({ id: other, status: 404 });
    expect((await findDecision(admin, idOf(hiding), cookie)).decision).toMatchObject({ requestId: other, status: 401 });
  });

  it('no token, no path that exists, a scope that is missing, a proof that was used before', async () => {
    await passStart();
    const client = createDpopClient();
    const bound = await provider.sign({ sub, cnf: { jkt: client.jkt } });
    const url = `${service.url}/api/private`;
    const { authorization, dpop } = client.headers(bound, { url });
    const proven = ['Authorization', authorization, 'DPoP', dpop];
    const answers = {
      missing_credentials: await send(service.url, '/api/private'),
      none: await send(service.url, '/api/nowhere'),
      insufficient_scope: await call('/api/private-scoped', await provider.sign({ sub, scope: 'openid' })),
      first: await send(service.url, '/api/private', { headers: [...proven, 'X-Request-Id', `first`] }),
      proof_replayed: await send(service.url, '/api/private', { headers: proven }),
    };
    await client.close();
    expect(Object.values(answers).map(({ status }) => status)).toEqual([401, 404, 403, 200, 401]);
    for (const reason of ['missing_credentials', 'insufficient_scope', 'proof_replayed'] as const) {
      const { decision, explanation } = await findDecision(admin, idOf(answers[reason]), cookie);
      expect([decision.reason, explanation?.reason]).toEqual([reason, reason]);
      if (reason === 'proof_replayed') {
        const failed = explanation?.checks.filter(({ verdict }) => verdict === 'fail');
        expect(failed).toEqual([expect.objectContaining({ id: 'replay', reason, docs: 'refusals.md#proof_replayed' })]);
      }
    }
    await stream.until(idOf(answers.none));
    const streamed = readDecisions(stream.text()).flatMap(({ decisions }) => decisions);
    const other = { outcome: 'other', route: 'unmatched', path: '/api/nowhere' };
    expect(streamed.find(({ id }) => id === idOf(answers.none))).toMatchObject(other);

    // Nothing that was sent comes out, streamed or asked for.
    const paths = [...streamed.map(({ id }) => `decisions/${id}`), 'state'];
    const read = await Promise.all(paths.map((path) => send(admin, `/console/api/${path}`, { headers: cookie })));
    const shown = stream.text() + read.map(({ body }) => body).join('');
    const secrets = [...bound.split('.'), ...dpop.split('.')].flatMap(windowsOf);
    expect(secrets.length).toBeGreaterThan(500);
    expect(secrets.filter((secret) => shown.includes(secret))).toEqual([]);
    expect(shown).not.toContain(sub);
  });

  it('the state: routes, keys, settings, what happened', async () => {
    const { json } = await send(admin, '/console/api/state', { headers: cookie });
    expect(json).toMatchObject({ command: 'serve', ready: true });
    const { routes, keys, settings, notes } = json as Readonly<Record<string, readonly unknown[]>>;
    expect(routes).toContainEqual(
      expect.objectContaining({ path: '/api/private-scoped', access: 'token', needs: ['scope read:messages'] }),
    );
    expect(keys).toEqual([expect.objectContaining({ issuer: provider.issuer, usable: true, ids: [provider.kid] })]);
    expect(settings).toContainEqual(['Audience', provider.audience]);
    expect(notes).toContainEqual(expect.objectContaining({ event: 'keys_fetched', level: 'info' }));
  });

  it('ninth open page → 503; a closed page makes room', async () => {
    const [, value] = cookie;
    const more = await Promise.all(Array.from({ length: 7 }, () => openStream(admin, value)));
    await expect(openStream(admin, value)).rejects.toThrow('503');
    for (const each of more) each.close();
    await expect.poll(() => openStream(admin, value).then((opened) => opened.close())).toBeUndefined();
  });
});

describe('the decisions of the gate', async () => {
  const rules = (id: string) => ({
    issuers: { staff: { issuer: provider.issuer, audience: provider.audience } },
    rules: [
      { id: 'health', path: '/healthz', access: 'open' },
      { id, path: '/orders/**', methods: ['GET'], scopes: ['read:orders'] },
      { id: 'trial', path: '/trial', scopes: ['read:trial'], mode: 'report' },
    ],
  });
  const {
    service: gate,
    admin,
    cookie,
  } = await useConsole((environment) => openGate(provider, rules('orders'), environment));

  const activeRule = async (): Promise<unknown> => {
    const { json } = await send(admin, '/console/api/state', { headers: cookie });
    const { routes } = json as { readonly routes: readonly { readonly id: string; readonly path: string }[] };
    return routes.find(({ path }) => path === '/orders/**')?.id;
  };

  it('a refused call of a rule, a call without a rule, a rule that only reports', async () => {
    const headers = bearer(await provider.sign());
    const refused = await findDecision(admin, idOf(await gate.ask({ path: '/orders/1', headers })), cookie);
    expect(refused.decision).toMatchObject({ route: 'orders', routeKind: 'rule', reason: 'insufficient_scope' });
    expect(refused.explanation).toMatchObject({ verdict: 'refused', reason: 'insufficient_scope' });
    const stream = await openStream(admin, cookie[1]);
    const unknown = idOf(await gate.ask({ path: '/elsewhere', headers }));
    await gate.ask({ path: '/trial', headers: [...headers, 'X-Request-Id', `trial`] });
    await stream.until(unknown);
    await stream.until(`trial`);
    stream.close();
    const decisions = readDecisions(stream.text()).flatMap((each) => each.decisions);
    expect(decisions.find(({ id }) => id === unknown)).toMatchObject({ reason: 'no_rule', status: 403 });
    const reported = await findDecision(admin, `trial`, cookie);
    expect(reported.decision).toMatchObject({ outcome: 'would_refuse', reason: 'insufficient_scope', status: 200 });
    expect(reported.explanation).toMatchObject({
      verdict: 'admitted',
      rule: { id: 'trial', mode: 'report', wouldRefuse: 'insufficient_scope' },
    });
  });

  it('a call that no rule matches → its target, and the rules that nearly matched', async () => {
    const target = { method: 'POST', path: '/orders/1?token=x', host: 'api.example' };
    const { decision, facts } = await findDecision(admin, idOf(await gate.ask(target)), cookie);
    expect(decision).toMatchObject({ reason: 'no_rule', status: 403 });
    expect(Object.fromEntries(facts)).toEqual({
      ...{ host: 'api.example', path: '/orders/1' },
      nearest: `${(await activeRule()) ?? ''} (it is for GET)`,
    });
  });

  it('the rules in force, and what became of a reload', async () => {
    const read = async () =>
      (await send(admin, '/console/api/state', { headers: cookie })).json as Record<
        'routes' | 'notes',
        readonly Record<string, unknown>[]
      >;
    expect((await read()).routes).toContainEqual(
      expect.objectContaining({ id: 'orders', path: '/orders/**', methods: ['GET'], needs: ['scope read:orders'] }),
    );
    await gate.writeRules(rules('orders-again'));
    await expect.poll(async () => (await read()).routes.map(({ id }) => id)).toContain('orders-again');
    await gate.writeRules('{"rules": 1}');
    await expect.poll(async () => (await read()).notes.map(({ event }) => event)).toContain('rules_kept');
    expect((await read()).routes.map(({ id }) => id)).toContain('orders-again');
  });
});

it('a refused exchange → refused by its last check, with the error of the provider', async () => {
  const body = JSON.stringify({ error: 'invalid_target' });
  provider.serve('/oauth/token', (response) => void response.writeHead(400).end(body));
  const exchange = { issuer: 'staff', clientId: 'gate', clientSecretFile: 'package.json', audience: 'urn:orders' };
  const rules = {
    issuers: { staff: { issuer: provider.issuer, audience: provider.audience } },
    exchanges: { orders: exchange },
    rules: [{ id: 'orders', path: '/orders', exchange: 'orders' }],
  };
  const opened = await openConsole((environment) => openGate(provider, rules, environment));
  onTestFinished(opened.close);
  const id = idOf(await opened.service.ask({ path: '/orders', headers: bearer(await provider.sign()) }));
  const detail = await findDecision(opened.admin, id, opened.cookie);
  const reason = 'exchange_refused';
  expect(detail).toMatchObject({ decision: { reason }, explanation: { verdict: 'refused', reason, status: 403 } });
  const failed = detail.explanation?.checks.filter(({ verdict }) => verdict === 'fail');
  expect(failed).toEqual([expect.objectContaining({ reason, why: 'exchange orders, error invalid_target' })]);
  expect(explainDetail(detail)).toBe(detail.explanation);
});

it('calls of tools at the gate as the proxy → entry and condition, expected and seen', async () => {
  const upstream = createServer((incoming, outgoing) => {
    outgoing.statusCode = incoming.url === '/mcp?missing' ? 404 : 200;
    incoming.resume().on('end', () => outgoing.end('{}'));
  });
  onTestFinished(() => stop(upstream));
  const rules = {
    issuers: { staff: { issuer: provider.issuer, audience: provider.audience } },
    rules: [
      { id: 'mcp', path: '/mcp', mcp: { tools: { 'delete-*': { scopes: ['write'] }, list: {} } } },
      {
        ...{ id: 'tenants', path: '/t/{tenant}', mcp: { tools: { '*': {} } } },
        when: "token.level > 2 && (token.tenant == path.tenant) && (token.level > 5 ? 'otp' in token.amr : token.roles.exists(r, r == 'a'))",
      },
    ],
  };
  const UPSTREAM = `http://127.0.0.1:${await listen(upstream)}`;
  const {
    service: gate,
    admin,
    cookie,
    close,
  } = await openConsole((environment) => openGate(provider, rules, { ...environment, UPSTREAM }));
  onTestFinished(close);
  const stream = await openStream(admin, cookie[1]);
  const explainCall = async (name: string, path = '/mcp', claims = {}) => {
    const headers = [...bearer(await provider.sign(claims)), 'Content-Type', 'application/json', 'X-Request-Id', name];
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name } });
    await send(gate.url, path, { method: 'POST', headers, body });
    await stream.until(name);
    return (await findDecision(admin, name, cookie)).explanation;
  };
  const refused = await explainCall('delete-all');
  expect(refused).toMatchObject({ verdict: 'refused', reason: 'insufficient_scope' });
  expect(refused?.checks.find(({ id }) => id === 'mcp_operation')?.why).toBe('tools delete-all, entry delete-*');
  expect(refused?.checks.find(({ id }) => id === 'scopes')).toMatchObject({ verdict: 'fail', expected: ['write'] });
  const unknown = await explainCall('drop');
  expect(unknown).toMatchObject({ verdict: 'refused', reason: 'no_operation_policy' });
  const check = { verdict: 'fail', expected: 'delete-*, list', seen: 'tools drop' };
  expect(unknown?.checks.find(({ id }) => id === 'mcp_operation')).toMatchObject(check);
  expect((await explainCall('list'))?.verdict).toBe('admitted');
  const hash = '#[\\w-]{22}';
  const ternary = '(token.level > 5) ? ("otp" in token.amr) : token.roles.exists(r, r == "a")';
  for (const [name, tenant, claims, expected, seen] of [
    ['first', 'acme', { level: 1 }, 'token.level > 2', `token.level = ${hash}`],
    ['second', 'x', {}, 'token.tenant == path.tenant', `token.tenant = ${hash}, path.tenant = ${hash}`],
    ['ternary', 'acme', {}, ternary, `token.level = ${hash}, token.amr = \\(absent\\), token.roles = ${hash}`],
  ] as const) {
    const given = { tenant: 'acme', level: 3, roles: ['secret-role'], ...claims };
    const explanation = await explainCall(name, `/t/${tenant}`, given);
    expect(explanation).toMatchObject({ verdict: 'refused', reason: 'condition_not_met', rule: { id: 'tenants' } });
    const check = explanation?.checks.find(({ id }) => id === 'condition');
    expect(check).toMatchObject({ expected, seen: expect.stringMatching(new RegExp(`^${seen}$`)) });
    // The values of the log line have the same hashes.
    const line = await gate.findLog((each) => each['expected'] === expected);
    expect([line['received']].flat().join(', ')).toBe(check?.seen);
  }
  // The 404 is the upstream's: the gate has admitted the request.
  await explainCall('list', '/mcp?missing');
  const readOutcome = () =>
    readDecisions(stream.text())
      .flatMap(({ decisions }) => decisions)
      .find(({ status }) => status === 404)?.outcome;
  await expect.poll(readOutcome).toBe('allowed');
  stream.close();
});
