import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readCall } from '../../src/cli/explain/explained-call.ts';
import { openGate } from '../../src/cli/explain/explained-gate.ts';
import type { Explanation } from '../../src/explain/explanation.ts';
import { readGateSettings } from '../../src/gate/gate-settings.ts';
import { runCases } from '../../src/gate/review/rule-cases.ts';
import { readRules } from '../../src/gate/rules/rules-reader.ts';
import { runCommand } from '../support/command-runs.ts';
import { startTestProvider, type TestProvider } from '../support/test-provider.ts';

let provider: TestProvider;
let folder: string;
let file: string;
let environment: Readonly<Record<string, string>>;
beforeAll(async () => {
  provider = await startTestProvider();
  folder = await mkdtemp(join(tmpdir(), 'portcullis-explain-rules-'));
  file = join(folder, 'rules.json');
  environment = { NODE_EXTRA_CA_CERTS: provider.caFile };
  await writeFile(
    file,
    JSON.stringify({
      issuers: {
        staff: { issuer: provider.issuer, audience: 'orders' },
        other: { issuer: 'https://other.example/', audience: 'orders' },
      },
      rules: [
        { id: 'health', path: '/healthz', access: 'open' },
        { id: 'read', path: '/orders/**', methods: ['GET'], issuers: ['staff'], scopes: ['read'] },
        { id: 'write', path: '/orders/**', methods: ['POST'], issuers: ['staff'], scopes: ['write'] },
        { id: 'closed', path: '/closed', access: 'deny' },
        { id: 'watched', path: '/watched', issuers: ['staff'], mode: 'report' },
        { id: 'perhaps', path: '/perhaps', issuers: ['staff'], access: 'optional' },
        { id: 'others', path: '/others', issuers: ['other'] },
      ],
    }),
  );
});
afterAll(async () => {
  await provider.close();
  await rm(folder, { recursive: true });
});

const api = 'https://api.example';
const run = (input: string, ...args: readonly string[]) =>
  runCommand(['explain', '--rules', file, ...args], environment, input);
const runJson = async (input: string, ...args: readonly string[]) => {
  const { status, stdout, stderr } = await run(input, '--json', ...args);
  if (stdout === '') throw new Error(`exit ${status}: ${stderr}`);
  return { status, explanation: JSON.parse(stdout) as Explanation };
};
const good = (claims: object = {}) => provider.sign({ aud: 'orders', scope: 'read', ...claims });

describe('the rule decides', () => {
  it('a good token → admitted, and the rule is named', async () => {
    const { status, explanation } = await runJson(`curl -H 'Authorization: Bearer ${await good()}' ${api}/orders/1`);
    expect(explanation).toMatchObject({ verdict: 'admitted', rule: { id: 'read', mode: 'enforce' } });
    expect(explanation.checks[0]).toMatchObject({ id: 'rule', verdict: 'pass', why: 'read' });
    expect(status).toBe(0);
  });

  it('what the rule asks for is asked', async () => {
    const { status, explanation } = await runJson(await good(), '--method', 'POST', '--url', `${api}/orders`);
    expect(explanation).toMatchObject({ reason: 'insufficient_scope', status: 403, rule: { id: 'write' } });
    expect(status).toBe(1);
  });

  it('fixes name the members of the rules file', async () => {
    const { explanation } = await runJson(await good({ aud: 'Orders' }), '--url', `${api}/orders`);
    expect(explanation.checks.find(({ id }) => id === 'aud')).toMatchObject({
      setting: `"audience", in ${file}`,
      causes: [{ id: 'audience_case', fix: '"audience": "Orders"' }],
    });
  });

  it('open → admitted, whatever is sent', async () => {
    const { status, stdout } = await run('x', '--url', `${api}/healthz`);
    expect(stdout).toBe('admitted\n\nrule         ok    health, open to all: no token is looked at\nexit 0\n');
    expect(status).toBe(0);
  });

  it('optional and nothing sent → admitted', async () => {
    const { explanation } = await runJson(`curl ${api}/perhaps`);
    expect(explanation).toMatchObject({ verdict: 'admitted', rule: { id: 'perhaps' } });
  });

  it('a token of an issuer of another rule → refused, as the gate does', async () => {
    const { explanation } = await runJson(await good({ iss: 'https://other.example/' }), '--url', `${api}/orders`);
    expect(explanation).toMatchObject({ reason: 'invalid_issuer', rule: { id: 'read' } });
  });

  it('no keys of the issuer of the rule → undecided', async () => {
    const token = await good({ iss: 'https://other.example/' });
    const { status, explanation } = await runJson(token, '--offline', '--url', `${api}/others`);
    expect(explanation).toMatchObject({ rule: { id: 'others' }, verdict: 'undecided', against: { keys: 'none' } });
    expect(status).toBe(69);
  });
});

describe('refused before a token is looked at', () => {
  it('no rule → says so, and names the rule for another method', async () => {
    const { status, stdout } = await run('x', '--method', 'PUT', '--url', `${api}/orders/1`);
    expect(stdout).toMatch(
      /^refused: no_rule .*refusals\.md#no_rule\n {2}call is +PUT api\.example\/orders\/1 +\(read matches with GET, write matches with POST\)\n/,
    );
    expect(status).toBe(1);
    expect((await run('x', '--url', `${api}/orderz`)).stdout).toContain('(no rule has this host and path)');
  });

  it('denied by its rule', async () => {
    const { explanation } = await runJson('x', '--url', `${api}/closed`);
    expect(explanation).toMatchObject({ reason: 'denied_by_rule', status: 403, rule: { id: 'closed' } });
    expect(explanation.checks.find(({ verdict }) => verdict === 'fail')?.reason).toBe('denied_by_rule');
  });

  it.each(['/orders/../admin', '/orders//1', '/orders/a%2fb', '/orders;x'])('%s → ambiguous_path', async (path) => {
    const written = `GET ${path} HTTP/1.1\nHost: api.example\nAuthorization: Bearer x\n`;
    expect((await runJson(written)).explanation).toMatchObject({ reason: 'ambiguous_path', status: 400 });
    expect((await runJson('x', '--url', api + path)).explanation).toMatchObject({ reason: 'ambiguous_path' });
  });
});

describe('a rule that only reports', () => {
  it('admitted, and says what it would be refused for', async () => {
    const input = `curl -H 'Authorization: Bearer ${await good({ exp: 1 })}' ${api}/watched`;
    const { status, explanation } = await runJson(input);
    expect(explanation).toMatchObject({ verdict: 'admitted', rule: { mode: 'report', wouldRefuse: 'expired' } });
    expect(explanation).not.toHaveProperty('reason');
    expect(status).toBe(0);
    expect((await run(input)).stdout).toMatch(
      /^admitted, since the rule watched only reports; it would be refused: expired /,
    );
  });
});

describe('the same decisions as the gate', () => {
  it('for each sample call', async () => {
    const read = await readRules({ name: file, text: await readFile(file, 'utf8') });
    const result = readGateSettings({ args: ['--rules', file], environment: {} });
    if (read.kind === 'problems' || result.kind === 'problems') throw new Error(JSON.stringify([read, result]));
    const gate = await openGate(file, result.settings, { environment: {}, jwksFile: undefined, network: 'offline' });
    if (typeof gate === 'string') throw new Error(gate);
    const calls = [
      ...['GET /healthz', 'GET /orders/1', 'PUT /orders', 'GET /closed', 'GET /perhaps', 'GET /others', 'GET /'],
      ...['GET /orders//1', 'GET /orders/a%2Fb', 'OPTIONS /orders', 'HEAD /orders', 'GET /watched', 'GET /healthz/'],
    ];
    const samples = calls.map((call) => {
      const [method = '', path = ''] = call.split(' ');
      return { method, url: api + path, dpop: false, headers: {}, expect: 'allowed' };
    });
    const outcomes = await runCases(read.rules, samples);
    for (const [index, { method, url }] of samples.entries()) {
      const [call, outcome] = [calls[index], outcomes[index]];
      const input = { kind: 'request', method, url, headers: [['Host', 'api.example']] } as const;
      const called = readCall(input, { method: undefined, url: undefined });
      const asked = { ...called, kind: input.kind, at: undefined, policy: undefined, show: [] };
      const { explanation } = await gate.explain(asked);
      const decision = explanation.reason ?? explanation.rule?.wouldRefuse ?? 'allowed';
      expect([call, decision, explanation.rule?.id]).toEqual([call, outcome?.decision, outcome?.rule]);
    }
    gate.close();
  });
});

describe('what cannot work', () => {
  it('a token without a URL → 64: rules are for URLs', async () => {
    const { status, stderr } = await run('x');
    expect([status, stderr.split('\n')[0]]).toEqual([
      64,
      'portcullis: rules are for URLs, and the text tells none: name --url, and --method if it is not GET.',
    ]);
  });

  it('with --audience → 64', async () => {
    expect((await run('x', '--url', api, '--audience', 'x')).status).toBe(64);
  });

  it('rules that cannot be used → 78 with the line', async () => {
    const bad = join(folder, 'bad.json');
    await writeFile(bad, '{"rules": [{"id": "a", "path": "a"}]}');
    const { status, stderr } = await runCommand(['explain', '--rules', bad, '--url', api], {}, 'x');
    expect(status).toBe(78);
    expect(stderr).toMatch(/bad\.json:1:\d+: /);
    expect((await runCommand(['explain', '--rules', `${bad}.gone`, '--url', api], {}, 'x')).status).toBe(78);
  });

  it('RULES of the environment are in force too', async () => {
    const { stdout } = await runCommand(['explain'], { ...environment, RULES: file }, `curl ${api}/closed`);
    expect(stdout).toMatch(/^refused: denied_by_rule /);
  });
});

describe('--show', () => {
  const settings = () => ({
    ...environment,
    IDP_DOMAIN: new URL(provider.issuer).host,
    IDP_AUDIENCE: provider.audience,
  });

  it('shows the claims that are named, and no others', async () => {
    const token = await provider.sign({ sub: 'auth0|alice', email: 'a@b.example', org: { id: 7 } });
    const { stdout } = await runCommand(
      ['explain', '--show', 'sub', '--show', 'org', '--show', 'none'],
      settings(),
      token,
    );
    expect(stdout.split('\n').filter((line) => line.startsWith('shown'))).toEqual([
      'shown: sub is auth0|alice',
      'shown: org is {"id":7}',
      'shown: none is absent',
    ]);
    expect(stdout).not.toContain('a@b.example');
  });

  it('an unverified claim is marked; a part of the signature and controls never come out', async () => {
    const token = await provider.sign({ aud: 'x' });
    const evil = await provider.sign({ iss: 'https://evil.example/', sub: `\x1b[2J`, note: token.slice(-40) });
    const call = `curl -H 'Authorization: Bearer ${evil}' -H 'X-Access-Token: ${token}' ${api}/`;
    const { stdout } = await runCommand(['explain', '--show', 'sub', '--show', 'note'], settings(), call);
    expect(stdout).toContain('shown: sub is \\u{1b}[2J  (unverified text of the token)');
    expect(stdout).toContain('shown: note is (withheld');
  });

  it('of a log line → 64', async () => {
    const line = JSON.stringify({ event: 'request', reason: 'expired' });
    expect((await runCommand(['explain', '--show', 'sub'], settings(), line)).status).toBe(64);
  });
});
