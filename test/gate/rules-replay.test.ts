import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createReplay, type Replayed, readRecorded } from '../../src/gate/review/rules-replay.ts';
import { runCommand } from '../support/command-runs.ts';
import { useFolder } from '../support/folder.ts';
import { type Asked, useGate } from '../support/gate-process.ts';
import { readValidRules } from '../support/read-rules.ts';
import { useTestProvider } from '../support/test-provider.ts';

const [main, partner] = [await useTestProvider(), await useTestProvider()];
const folder = useFolder();
const trail = join(folder, 'audit.jsonl');

type RuleMembers = Readonly<Record<string, unknown>>;
const token = { issuers: ['main'] };
const before: readonly RuleMembers[] = [
  { id: 'orders', path: '/orders/**', hosts: ['api.example'], ...token, scopes: ['read'] },
  { id: 'either', path: '/either', issuers: ['main', 'partner'], anyScope: ['read', 'admin'] },
  { id: 'watched', path: '/watched', mode: 'report', ...token, scopes: ['write'] },
  { id: 'open', path: '/open', access: 'open' },
  { id: 'closed', path: '/closed', access: 'deny' },
  { id: 'perhaps', path: '/perhaps', access: 'optional', ...token },
];
/** Replaces members of a rule. */
const change = (id: string, members: RuleMembers): readonly RuleMembers[] =>
  before.map((rule) => (rule['id'] === id ? { ...rule, ...members } : rule));
const fileOf = (rules: readonly RuleMembers[]) => ({
  issuers: Object.fromEntries(
    Object.entries({ main, partner }).map(([name, { issuer, audience }]) => [name, { issuer, audience }]),
  ),
  rules,
});

const lines = (): readonly string[] => readFileSync(trail, 'utf8').split('\n').filter(Boolean);

const gate = await useGate(main, fileOf(before), { AUDIT_LOG: trail, LOG_IDENTITY: 'plain' });
const now = Math.floor(Date.now() / 1000);
const tokens = await Promise.all([
  main.sign({ scope: 'read' }),
  main.sign({ scope: 'read write admin' }),
  main.sign({ scope: '' }),
  main.sign({ scope: 'read', act: { sub: 'agent' } }),
  main.sign({ scope: 'read', exp: now - 600, iat: now - 1200 }),
  main.sign({ scope: 'read', aud: 'other' }),
  partner.sign({ scope: 'read' }),
]);
const credentials = [[], ...tokens.map((each) => ['Authorization', `Bearer ${each}`]), ['Authorization', 'Bearer x']];
/** No rule and no change looks at the credentials of these. */
const withoutToken = ['/orders/a%2fb', '/closed', '/none', '/a//b'];
const paths = ['/orders/1', '/either', '/watched', '/open', '/perhaps', ...withoutToken];
const requests: readonly Asked[] = paths.flatMap((path) => [
  ...(withoutToken.includes(path) ? credentials.slice(0, 2) : credentials).map((headers) => ({ path, headers })),
  { path, method: 'POST', headers: credentials[1] ?? [] },
  { path, host: 'other.example', headers: credentials[1] ?? [] },
  { path, proto: 'ftp' },
]);

/** Sends all requests to the gate. Returns their lines. */
async function record(): Promise<readonly string[]> {
  const from = lines().length;
  for (const each of requests) await gate.ask(each);
  return lines().slice(from);
}

const recorded = await record();

const exchanges = { out: { issuer: 'main', clientId: 'gate', clientSecretFile: 'secret', audience: 'orders' } };

function replay(rules: readonly RuleMembers[], texts: readonly string[] = recorded): readonly Replayed[] {
  const decide = createReplay(readValidRules({ ...fileOf(rules), exchanges }));
  return texts.map((text) => {
    const line = readRecorded(text);
    if (line === undefined) throw new Error(`not a decision: ${text}`);
    return decide(line);
  });
}

/** Facts behind refused tokens and requests without a token, which no line has. */
const always = ['aud', 'iss', 'token'];

describe('decisions of a replay and of a gate with the new rules', () => {
  it.each<[name: string, rules: () => readonly RuleMembers[], unknown: readonly string[]]>([
    ['a scope more', () => change('orders', { scopes: ['read', 'write'] }), []],
    ['a scope less', () => change('orders', { scopes: undefined }), []],
    ['a scope that includes others', () => change('orders', { scopes: ['read'], implies: { admin: ['read'] } }), []],
    ['another host', () => change('orders', { hosts: ['other.example'] }), []],
    ['an encoded slash', () => change('orders', { encodedSlash: 'allow' }), []],
    ['an issuer less', () => change('either', { issuers: ['main'] }), []],
    ['another issuer', () => change('orders', { issuers: ['partner'] }), []],
    ['one of several scopes', () => change('either', { anyScope: ['admin'] }), []],
    ['enforce', () => change('watched', { mode: 'enforce' }), []],
    ['report', () => change('orders', { mode: 'report' }), []],
    ['open', () => change('orders', { access: 'open', issuers: undefined, scopes: undefined }), []],
    ['deny', () => change('orders', { access: 'deny', issuers: undefined, scopes: undefined }), []],
    ['optional', () => change('orders', { access: 'optional' }), ['credentials']],
    ['a token where none was needed', () => change('open', { access: 'token', ...token }), []],
    ['DPoP required', () => change('orders', { dpop: 'required' }), []],
    ['no actor', () => change('orders', { actor: 'forbidden' }), []],
    ['a condition', () => change('orders', { when: 'token.tenant == "a"' }), ['tenant']],
    ['an actor', () => change('orders', { actor: 'required' }), []],
    ['an actor of a list', () => change('orders', { actor: [{ sub: 'agent' }] }), ['act']],
    ['permissions', () => change('orders', { permissions: ['a'] }), ['permissions']],
    ['an audience', () => change('orders', { audience: ['api'] }), []],
    ['a step-up', () => change('orders', { acr: ['gold'], maxAge: 60 }), ['acr']],
    ['a rule less', () => before.slice(1), []],
    ['a rule more', () => [...before, { id: 'none', path: '/none', ...token }], []],
    ['a more specific rule', () => [...before, { id: 'one', path: '/orders/1', access: 'deny' }], []],
  ])('%s → equal, or unknown', async (_name, rules, facts) => {
    const replayed = replay(rules());
    const generation = gate.logs.filter(({ event }) => event === 'rules_loaded').length;
    await gate.writeRules({ ...fileOf(rules()), $schema: `${generation}` });
    gate.signal('SIGHUP');
    await gate.findLog(() => gate.logs.filter(({ event }) => event === 'rules_loaded').length > generation);
    const decided = await record();
    expect(decided).toHaveLength(replayed.length);
    const unknown = new Set<string>();
    for (const [at, each] of replayed.entries()) {
      const [old, now] = [recorded[at], decided[at]].map((text) => JSON.parse(text ?? ''));
      if (each.kind === 'unknown') unknown.add(each.fact);
      const [decision, reason] = each.kind === 'changed' ? [each.decision, each.reason] : [old.decision, now.reason];
      if (each.kind !== 'unknown')
        expect([now.decision, now.reason], `${at} ${recorded[at]}`).toEqual([decision, reason]);
    }
    expect([...unknown].toSorted()).toEqual([...always, ...facts].toSorted());
  });
});

describe('facts that a line does not have', () => {
  const line = (members: Readonly<Record<string, unknown>>): string =>
    JSON.stringify({
      ...{ time: '2026-01-02T03:04:05.006Z', event: 'decision', id: 'a'.repeat(36), decision: 'admitted' },
      ...{ method: 'GET', host: 'api.example', path: '/orders/1', rule: 'orders' },
      ...{ issuer: main.issuer, entry: 'main', sub: 'ann', scopes: ['read'], scheme: 'Bearer', ...members },
    });
  const same = { kind: 'same' };
  const past = (reason: string, more: object = {}) => ({ decision: 'refused', reason, ...more });
  const admitted = { kind: 'changed', rule: 'orders', decision: 'admitted', reason: undefined, needs: [] };
  const unknown = (fact: string) => ({ kind: 'unknown', fact });
  const refused = (reason: string, needs: readonly string[] = []) =>
    expect.objectContaining({ kind: 'changed', decision: 'refused', reason, needs });

  it.each<[string, Readonly<Record<string, unknown>>, RuleMembers, () => unknown]>([
    ['complete', {}, {}, () => same],
    ['complete', {}, { scopes: ['read', 'write'] }, () => refused('insufficient_scope', ['write'])],
    ['complete', {}, { scopes: undefined, anyScope: ['a', 'b'] }, () => refused('no_accepted_scope', ['a', 'b'])],
    ['AUDIT_PATH=off', { path: undefined }, {}, () => unknown('path')],
    ['a path of the limit', { path: `/orders/${'a'.repeat(248)}` }, {}, () => unknown('path')],
    ['a path below the limit', { path: `/orders/${'a'.repeat(247)}` }, {}, () => same],
    ['a short path, and a longer id', { path: '/orders/' }, {}, () => same],
    ['a masked token in the path', { path: '/orders/***' }, {}, () => unknown('path')],
    ['no host', { host: undefined }, {}, () => unknown('host')],
    ['scopes that were cut', { scopes_omitted: 3 }, { scopes: ['write'] }, () => unknown('scopes')],
    ['scopes that were cut, and the needed one is there', { scopes_omitted: 3 }, {}, () => same],
    ['no identity', { sub: undefined }, { actor: 'forbidden' }, () => unknown('act')],
    ['no entry', { entry: undefined }, {}, () => unknown('aud')],
    ['an entry that has another issuer now', { issuer: 'https://x.test/' }, {}, () => refused('invalid_issuer')],
    [
      'a proof that was not recorded as used',
      past('insufficient_scope', { scopes: [], scheme: 'DPoP' }),
      { scopes: undefined },
      () => unknown('proof'),
    ],
    ['DPoP where only Bearer is accepted', { scheme: 'DPoP' }, { dpop: 'off' }, () => refused('dpop_not_accepted')],
    ['a claim', {}, { when: "token.tenant == 'acme'" }, () => unknown('tenant')],
    ['a condition without a claim', {}, { when: 'now > timestamp(0)' }, () => unknown('condition')],
    [
      'a claim, and a missing scope',
      {},
      { when: 'token.a', scopes: ['b'] },
      () => refused('insufficient_scope', ['b']),
    ],
    ['a condition less', past('condition_not_met'), {}, () => admitted],
    ['an exchange that is gone', past('exchange_refused'), {}, () => admitted],
    ['an exchange', {}, { exchange: 'out' }, () => unknown('exchange')],
    [
      'a replayed proof, in report mode now',
      past('proof_replayed', { scheme: 'DPoP' }),
      { mode: 'report' },
      () => unknown('proof'),
    ],
    ['a replayed proof', past('proof_replayed', { scheme: 'DPoP' }), {}, () => same],
    ['an MCP operation', {}, { mcp: { tools: { a: {} } } }, () => unknown('operation')],
    ['MCP without its scope', {}, { mcp: { tools: {} }, scopes: ['x'] }, () => refused('insufficient_scope', ['x'])],
    ['a preflight', { method: 'OPTIONS' }, { preflight: 'allow' }, () => unknown('access-control-request-method')],
    ['an upstream without a response', past('upstream_timeout'), {}, () => same],
  ])('%s %j → with %j as expected', (_name, members, rule, expected) => {
    expect(replay(change('orders', rule), [line(members)])).toEqual([expected()]);
  });

  it.each([
    '',
    '{',
    '[]',
    '{"event":"request"}',
    '{"event":"decision"}',
    '{"event":"decision","time":"x","decision":"admitted","method":"GET"}',
    '{"event":"decision","time":"2026-01-02T03:04:05Z","decision":"other","method":"GET"}',
  ])('%s → not a decision', (text) => {
    expect(readRecorded(text)).toBeUndefined();
  });
});

describe('the command', () => {
  const run = async (rules: readonly RuleMembers[], args: readonly string[] = [], name = trail) => {
    const file = join(folder, 'after.json');
    writeFileSync(file, JSON.stringify(fileOf(rules)));
    return runCommand(['rules', 'replay', name, file, ...args], {});
  };
  const write = (...texts: readonly string[]): string => {
    const file = join(folder, 'part.jsonl');
    writeFileSync(file, `${texts.join('\n')}\n`);
    return file;
  };
  const admitted = (): string =>
    recorded.find((text) => text.includes('"admitted"') && text.includes('"orders"')) ?? '';
  const scoped = () => change('orders', { scopes: ['read', 'write'] });

  it('a scope more → 1, each change with its count and an example, and a total', async () => {
    const { status, stdout } = await run(scoped(), [], write(admitted(), admitted(), 'no decision'));
    expect(stdout).toMatch(
      /^orders: 2 admitted → refused insufficient_scope, needs write\n {2}such as GET api\.example\/orders\/1, 20\S+Z, id \S+\n2 decisions: 2 would change, 1 unknown \(unreadable 1\)\n$/,
    );
    expect(status).toBe(1);
  });

  it('--json → the same facts', async () => {
    const { stdout } = await run(scoped(), ['--json'], write(admitted(), 'x'));
    expect(JSON.parse(stdout)).toMatchObject({
      ...{ version: 1, decisions: 1, unknown: { unreadable: 1 } },
      changes: [
        {
          ...{ rule: 'orders', decision: 'refused', reason: 'insufficient_scope', needs: ['write'], count: 1 },
          ...{ before: { decision: 'admitted' }, example: { method: 'GET', host: 'api.example', path: '/orders/1' } },
        },
      ],
    });
  });

  it.each<[string, () => Promise<{ readonly status: number | null; readonly stderr: string }>, number, RegExp]>([
    ['no change', () => run(before, [], write(admitted())), 0, /^$/],
    ['no change, and an unreadable line', () => run(before, [], write(admitted(), '{')), 69, /^$/],
    ['only decisions before', () => run(scoped(), ['--until', '2020-01-01'], write(admitted())), 0, /^$/],
    ['only decisions after', () => run(scoped(), ['--since', '2100-01-01'], write(admitted())), 0, /^$/],
    ['not a time', () => run(before, ['--since', 'yesterday']), 64, /--since takes a time/],
    ['no trail', () => run(before, [], join(folder, 'none')), 66, /cannot be read \(ENOENT\)/],
    ['a folder as the trail', () => run(before, [], folder), 66, /cannot be read \(EISDIR\)/],
    ['rules with a problem', () => run(change('orders', { acces: 'open' })), 78, /no member "acces"/],
    ['a flag of replay elsewhere', () => runCommand(['rules', 'check', 'x', '--json'], {}), 64, /for rules replay/],
  ])('%s → its exit status', async (_name, start, status, stderr) => {
    const result = await start();
    expect(result.stderr).toMatch(stderr);
    expect(result.status).toBe(status);
  });
});
