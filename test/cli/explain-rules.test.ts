import { execFile } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { openGate } from '../../src/cli/explain/explained-gate.ts';
import type { Explanation } from '../../src/explain/explanation.ts';
import { readCall } from '../../src/explain/input/explained-call.ts';
import { readGateSettings } from '../../src/gate/gate-settings.ts';
import { runCases } from '../../src/gate/review/rule-cases.ts';
import { readRules } from '../../src/gate/rules/rules-reader.ts';
import { runCommand } from '../support/command-runs.ts';
import { createDpopClient } from '../support/dpop-client.ts';
import { useFolder } from '../support/folder.ts';
import { needs } from '../support/programs.ts';
import { useTestProvider } from '../support/test-provider.ts';

const maps = { tools: { 'delete-*': { scopes: ['write'], actor: 'forbidden' }, list: {} } };
const provider = await useTestProvider();
const folder = useFolder();
const file = join(folder, 'rules.json');
const environment = { NODE_EXTRA_CA_CERTS: provider.caFile };
beforeAll(async () => {
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
        { id: 'hosted', hosts: ['api.test'], path: '/orders/**', issuers: ['staff'] },
        { id: 'watched', path: '/watched', issuers: ['staff'], mode: 'report' },
        { id: 'perhaps', path: '/perhaps', issuers: ['staff'], access: 'optional' },
        { id: 'chat', path: '/chat', issuers: ['staff'], webSocketToken: 'protocol' },
        {
          ...{ id: 'tenant', path: '/t/{tenant}', issuers: ['staff'] },
          when: "request.headers['x-app'] == '1' && token.tenant == path.tenant",
        },
        {
          ...{ id: 'notes', path: '/notes/{tenant}', issuers: ['staff'], mcp: { tools: { list: {} }, resources: {} } },
          when: "'otp' in token.amr && (token.tenant == 'a' ? token.level > 2 : token.groups.exists(g, g == path.tenant))",
        },
        { id: 'office', path: '/office', issuers: ['staff'], when: "request.client_ip == '192.0.2.1'" },
        { id: 'others', path: '/others', issuers: ['other'] },
        { id: 'mcp', path: '/mcp', issuers: ['staff'], scopes: ['read'], mcp: maps },
        { id: 'visitors', path: '/visitors', issuers: ['staff'], access: 'optional', mcp: maps },
      ],
    }),
  );
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
  it('a valid token → admitted, and the rule is named', async () => {
    const { status, explanation } = await runJson(`curl -H 'Authorization: Bearer ${await good()}' ${api}/orders/1`);
    expect(explanation).toMatchObject({ verdict: 'admitted', rule: { id: 'read', mode: 'enforce' } });
    expect(explanation.checks[0]).toMatchObject({ id: 'rule', verdict: 'pass', why: 'read' });
    expect(status).toBe(0);
  });

  it('Host of curl and of header lines → the rule of that host, as at the gate', async () => {
    const authorization = `Authorization: Bearer ${await good()}`;
    const local = 'http://127.0.0.1:8080/orders/1';
    const curl = (more: string) => `curl -H '${authorization}' ${more} ${local}`;
    const rule = async (...call: Parameters<typeof runJson>) => (await runJson(...call)).explanation.rule?.id;
    expect(await rule(curl("-H 'Host: api.test'"))).toBe('hosted');
    expect(await rule(`${authorization}\nHost: api.test`, '--url', local)).toBe('hosted');
    expect(await rule(curl(''))).toBe('read');
    expect(await rule(curl("-H 'Host: api.test'"), '--url', local)).toBe('read');
  });

  it.each([
    ['GET /orders/1', '', 'admitted'],
    ['GET http://api.example/orders/1', '', 'admitted'],
    ['GET http://other.example/orders/1', '', 'ambiguous_request'],
    ['OPTIONS *', '', 'ambiguous_request'],
    ['GET /orders/1', 'Content-Length: 1\nContent-Length: 2\n', 'ambiguous_request'],
    ['GET /orders/1#x', '', 'ambiguous_path'],
    ['GET /orders/1', 'Expect: 100-continue\n', 'admitted'],
    ['GET /orders/1', 'Expect: x\n', 417],
    ['GET /orders/1', `Cookie: ${'x'.repeat(32 * 1024)}\n`, 431],
    // As the proxy, the gate trusts no peer by default.
    ['GET /orders/1', 'X-Forwarded-Proto: https, http\n', 'admitted'],
    ['GET /orders/1', 'Host: a b\n', 'bad_host_header'],
  ])('as the proxy: %s, %.40j → %s', async (target, lines, outcome) => {
    const host = lines.startsWith('Host') ? '' : 'Host: api.example\n';
    const call = `${target} HTTP/1.1\n${host}Authorization: Bearer ${await good()}\n${lines}\n`;
    const args = ['explain', '--json', '--rules', file];
    const { stdout } = await runCommand(args, { ...environment, UPSTREAM: 'http://127.0.0.1:1' }, call);
    const { reason, verdict, status } = JSON.parse(stdout) as Explanation;
    expect(reason ?? status ?? verdict).toBe(outcome);
  });

  it.each([
    [['--method', 'GET', '--url', `${api}/orders/1`], 1, { reason: 'missing_credentials', rule: { id: 'read' } }],
    [['--url', `${api}/healthz`], 0, { verdict: 'admitted', rule: { id: 'health' } }],
    [['--method', 'DELETE', '--url', `${api}/orders/1`], 1, { reason: 'no_rule' }],
  ])('%j without input → the request without a token', async (args, status, expected) => {
    for (const input of ['', '\n']) {
      const { status: seen, explanation } = await runJson(input, ...args);
      expect(explanation).toMatchObject(expected);
      expect(seen).toBe(status);
    }
    const empty = await run('', ...args, '--file', '/dev/null');
    expect([empty.status, empty.stderr]).toEqual([64, expect.stringContaining('The input is empty')]);
  });

  it('a URL on a terminal → no input is awaited', needs('python3'), async () => {
    const terminal = 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))';
    const command = [process.execPath, 'dist/cli/main.js', 'explain', '--rules', file, '--offline'];
    const args = ['-c', terminal, ...command, '--url', `${api}/orders/1`];
    const env = { PATH: process.env['PATH'], TERM: 'dumb' };
    // Nothing is written to its standard input, which stays open.
    const ended = await promisify(execFile)('python3', args, { env }).catch((error) => error);
    expect([ended.code, ended.stdout]).toEqual([1, expect.stringMatching(/^refused: missing_credentials/)]);
  });

  it('requirements of the rule are checked', async () => {
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

  it.each<[string, string, object]>([
    ['chat, bearer, T', 'chat', { verdict: 'admitted', rule: { id: 'chat' } }],
    ['bearer, bearer, T', 'chat', { reason: 'ambiguous_request', status: 400, rule: { id: 'chat' } }],
    ['bearer, T', 'orders', { reason: 'missing_credentials', rule: { id: 'read' } }],
  ])('subprotocols %s at /%s → %j, without the token', async (offered, path, expected) => {
    const token = await good();
    const head = `GET /${path} HTTP/1.1\r\nHost: api.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n`;
    const key = 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==';
    const input = `${head}${key}\r\nSec-WebSocket-Protocol: ${offered.replace('T', token)}\r\n\r\n`;
    const { explanation } = await runJson(input);
    expect(explanation).toMatchObject(expected);
    expect(JSON.stringify(explanation)).not.toContain(token.slice(-30));
  });

  it('open → admitted, whatever is sent', async () => {
    const { status, stdout } = await run('x', '--url', `${api}/healthz`);
    expect(stdout).toBe('admitted\n\nrule         ok    health, open to all: tokens are ignored\nexit 0\n');
    expect(status).toBe(0);
  });

  it.each<[string, object, object]>([
    ['the tenant of the path', { tenant: 'acme' }, { verdict: 'admitted' }],
    ['another tenant', { tenant: 'x' }, { reason: 'condition_not_met', status: 403 }],
  ])('condition, %s → %j', async (_what, claims, expected) => {
    const input = `curl -H 'X-App: 1' -H 'Authorization: Bearer ${await good(claims)}' ${api}/t/acme`;
    const { explanation } = await runJson(input);
    expect(explanation).toMatchObject({ ...expected, rule: { id: 'tenant' } });
    if (explanation.verdict === 'admitted') return;
    expect(explanation.checks.find(({ id }) => id === 'condition')).toMatchObject({
      expected: 'token.tenant == path.tenant',
      seen: expect.stringMatching(/^token\.tenant = #\S+, path\.tenant = #\S+$/),
      causes: [{ id: 'claim_of_condition', certainty: 'certain', note: 'tenant is another value' }],
    });
  });

  it('condition on the address of the client → undecided', async () => {
    const { explanation } = await runJson(await good(), '--url', `${api}/office`);
    expect(explanation).toMatchObject({ verdict: 'undecided', rule: { id: 'office' } });
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

describe('refused before the token is read', () => {
  it('no rule → says so, and names the rule for another method', async () => {
    const { status, stdout } = await run('x', '--method', 'PUT', '--url', `${api}/orders/1`);
    expect(stdout).toMatch(
      /^refused: no_rule: No rule of the gate matches [\s\S]*\n {2}call is +PUT api\.example\/orders\/1\s+\(nearly matched: read \(it is for GET\); write \(it is for POST\); hosted \(it is for api\.test\)\)\n[\s\S]*refusals\.md#no_rule\n/,
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
      /^admitted,\s+because\s+the\s+rule\s+watched\s+is\s+in\s+report\s+mode;\s+otherwise\s+refused:\s+expired:\s/,
    );
  });
});

describe('a rule with mcp', () => {
  const call = (name: string, method = 'tools/call') => ({ jsonrpc: '2.0', id: 7, method, params: { name } });
  const curl = async (message: unknown, { claims = {}, path = '/mcp', more = '' } = {}) =>
    `curl ${api}${path} -H 'Authorization: Bearer ${await good(claims)}' -H 'Content-Type: application/json' ${more} ` +
    `--data '${JSON.stringify(message)}'`;
  const find = ({ checks }: Explanation, id: string) => checks.find((check) => check.id === id);

  it.each<readonly [string, unknown, object]>([
    ['a tool with its entry', call('list'), { verdict: 'pass', why: 'tools list, entry list' }],
    ['a tool without an entry', call('drop'), { expected: 'delete-*, list', seen: 'tools drop' }],
    ['a kind without a map', call('greet', 'prompts/get'), { expected: 'a map of prompts' }],
    ['a tool in another case', call('List'), { seen: 'tools List' }],
    ['a call without a name', { method: 'tools/call' }, { seen: 'tools without a name' }],
  ])('%s → %j, and no_operation_policy without an entry', async (_name, message, check) => {
    const { status, explanation } = await runJson(await curl(message));
    const reason = 'why' in check ? undefined : 'no_operation_policy';
    expect([explanation.reason, status]).toEqual([reason, reason === undefined ? 0 : 1]);
    expect(find(explanation, 'mcp_operation')).toMatchObject(check);
  });

  it('a tool without its scope → insufficient_scope with the scopes of the entry', async () => {
    const { explanation } = await runJson(await curl(call('delete-all')));
    expect(explanation).toMatchObject({ verdict: 'refused', reason: 'insufficient_scope', status: 403 });
    const scopes = explanation.checks.filter(({ id }) => id === 'scopes');
    expect(scopes).toMatchObject([
      { verdict: 'pass' },
      { verdict: 'fail', expected: ['write'], seen: expect.stringContaining('read') },
    ]);
    const { stdout } = await run(await curl(call('delete-all')));
    expect(stdout).toMatch(/^operation +ok +tools delete-all, entry delete-\*$/m);
  });

  it('a tool whose entry forbids actors → actor_not_allowed', async () => {
    const claims = { scope: 'read write', act: { sub: 'agent-1' } };
    expect((await runJson(await curl(call('delete-all'), { claims }))).explanation.reason).toBe('actor_not_allowed');
    expect((await runJson(await curl(call('list'), { claims }))).explanation.verdict).toBe('admitted');
  });

  const ternary = '(token.tenant == "a") ? (token.level > 2) : token.groups.exists(g, g == path.tenant)';
  it.each<readonly [string, object, string | undefined, object, string]>([
    ['true', { groups: ['a', 'b'] }, undefined, { verdict: 'pass' }, 'list'],
    ['true, for a tool without an entry', { groups: ['b'] }, 'no_operation_policy', {}, 'drop'],
    ['false: a ternary', { tenant: 'a', level: 2 }, 'condition_not_met', { expected: ternary }, 'list'],
    ['false: a ternary that fails', { tenant: 'a' }, 'condition_not_met', { expected: ternary }, 'list'],
    ['false: a call', { groups: ['c'] }, 'condition_not_met', { expected: ternary }, 'list'],
    [
      'false: the first operand',
      { amr: ['pwd'], groups: ['b'] },
      'condition_not_met',
      { expected: '"otp" in token.amr', causes: [{ id: 'claim_of_condition', certainty: 'certain' }] },
      'list',
    ],
  ])('the condition is %s → what was not true', async (_what, claims, reason, check, tool) => {
    const input = await curl(call(tool), { path: '/notes/b', claims: { amr: ['otp'], tenant: 'c', ...claims } });
    const { explanation } = await runJson(input);
    expect([explanation.reason, find(explanation, 'condition')]).toMatchObject([reason, check]);
  });

  it.each<readonly [string, unknown, string, string | undefined]>([
    ['a header that differs', call('list'), `-H 'Mcp-Name: drop'`, 'mcp_header_mismatch'],
    ['an empty batch', [], '', 'malformed_message'],
    ['two types', call('list'), `-H 'Content-Type: text/plain'`, 'malformed_message'],
    ['a batch with a forbidden call', [call('list'), call('delete-all')], '', 'insufficient_scope'],
    ['a method without entries', { id: 1, method: 'tools/list' }, '', undefined],
  ])('%s → %4$s', async (_name, message, more, reason) => {
    expect((await runJson(await curl(message, { more }))).explanation.reason).toBe(reason);
  });

  it('--data without a type → malformed_message, because curl sends a form; --json → admitted', async () => {
    const [authorization, text] = [`Authorization: Bearer ${await good()}`, JSON.stringify(call('list'))];
    const reasonOf = async (option: string) =>
      (await runJson(`curl ${api}/mcp -H '${authorization}' ${option} '${text}'`)).explanation.reason;
    expect([await reasonOf('--data'), await reasonOf('--json')]).toEqual(['malformed_message', undefined]);
  });

  it.each([
    ['no body', ''],
    ['a body in a file', '--data @message.json'],
  ])('%s → undecided, and what is missing', async (_name, data) => {
    const input = `curl ${api}/mcp -X POST -H 'Authorization: Bearer ${await good()}' ${data}`;
    const { status, explanation } = await runJson(input);
    expect([explanation.verdict, status]).toEqual(['undecided', 69]);
    const why = expect.stringContaining('--data');
    expect(find(explanation, 'mcp_operation')).toMatchObject({ verdict: 'unknown', why });
  });

  it('an HTTP request and a HAR → their body decides', async () => {
    const token = `Bearer ${await good()}`;
    const body = JSON.stringify(call('drop'));
    const headers = { Authorization: token, 'Content-Type': 'application/json' };
    const lines = Object.entries(headers).map(([name, value]) => ({ name, value }));
    const request = { method: 'POST', url: `${api}/mcp`, headers: lines, postData: { text: body } };
    const inputs = [
      `POST /mcp HTTP/1.1\r\nHost: api.example\r\nAuthorization: ${token}\r\nContent-Type: application/json\r\n\r\n${body}`,
      JSON.stringify({ log: { entries: [{ request, response: { status: 403, headers: [] } }] } }),
    ];
    for (const input of inputs) expect((await runJson(input)).explanation.reason).toBe('no_operation_policy');
  });

  it('optional and no token → operations need one, other messages do not', async () => {
    const anonymous = (message: unknown) =>
      runJson(`curl ${api}/visitors --json '${JSON.stringify(message)}'`).then(({ explanation }) => explanation);
    expect(await anonymous(call('list'))).toMatchObject({ reason: 'missing_credentials', status: 401 });
    expect(await anonymous({ method: 'tools/list' })).toMatchObject({ verdict: 'admitted' });
    expect(await anonymous([])).toMatchObject({ reason: 'malformed_message' });
    expect((await runJson(`curl ${api}/visitors -X POST`)).explanation.verdict).toBe('undecided');
  });
});

describe('the same decisions as the gate', () => {
  it('for each sample call', async () => {
    const read = await readRules({ name: file, text: await readFile(file, 'utf8') });
    const result = readGateSettings({ args: ['--rules', file], environment: {} });
    if (read.kind === 'problems' || result.kind === 'problems') throw new Error(JSON.stringify([read, result]));
    const given = { path: file, settings: result.settings, isTrustSet: false };
    const gate = await openGate(given, { environment: {}, jwksFile: undefined, network: 'offline' });
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
      const options = { kind: input.kind, at: Date.now() / 1000 };
      const explanation = await gate.explain({ ...readCall(input), policy: undefined, options });
      const decision = explanation.reason ?? explanation.rule?.wouldRefuse ?? 'allowed';
      expect([call, decision, explanation.rule?.id]).toEqual([call, outcome?.decision, outcome?.rule]);
    }
    gate.close();
  });
});

describe('invalid input', () => {
  it('a token without a URL → 64: rules are for URLs', async () => {
    const { status, stderr } = await run('x');
    expect(status).toBe(64);
    expect(stderr).toMatch(
      /^portcullis: rules are for URLs, and the input has none: add --url, and --method if it is not GET\.\n/,
    );
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
    expect(stdout).toMatch(/^refused: denied_by_rule: /);
  });
});

describe('--show', () => {
  const domain = new URL(provider.issuer).host;
  const settings = () => ({ ...environment, IDP_DOMAIN: domain, IDP_AUDIENCE: provider.audience });

  it('shows the claims that are named, and no others', async () => {
    const token = await provider.sign({ sub: 'auth0|alice', email: 'a@b.example', org: { id: 7 } });
    const flags = ['--show', 'sub', '--show', 'org', '--show', 'none'];
    const { stdout } = await runCommand(['explain', ...flags], settings(), token);
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
    expect(stdout).toContain('shown: sub is \\u{1b}[2J  (unverified claim of the token)');
    expect(stdout).toContain('shown: note is (withheld');
  });

  it('flags of a request with a log line or a response → a note that names them', async () => {
    const line = JSON.stringify({ event: 'request', reason: 'expired' });
    const response = 'HTTP/1.1 401 Unauthorized\nWWW-Authenticate: Bearer error="invalid_token"\n';
    const flags = ['--show', 'sub', '--scope', 'read:data', '--permission', 'orders:read', '--method', 'PUT'];
    const idle = '--method, --scope, --permission, --show';
    const explained = (input: string) => runCommand(['explain', ...flags], settings(), input);
    const noted = (kind: string): string => `portcullis: no effect on a ${kind}: ${idle}.\n`;
    expect(await explained(line)).toMatchObject({ status: 1, stderr: noted('log line') });
    expect(await explained(response)).toMatchObject({ status: 69, stderr: noted('response') });
  });
});

it.each([
  ['a valid token', {}, {}, 69, { verdict: 'undecided' }],
  ['an expired token', { exp: 1 }, {}, 1, { reason: 'expired' }],
  ['a bound token', { cnf: {} }, {}, 1, { reason: 'exchange_refused', status: 403 }],
  ['a bound token, with `bound`', { cnf: {} }, { bound: 'allow' }, 69, { verdict: 'undecided' }],
])(
  '%s for a rule with an exchange → as the gate decides, and nothing is sent',
  async (_what, claims, more, status, expected) => {
    const file = join(folder, 'exchanges.json');
    const client = { clientId: 'gate', clientSecretFile: 'none' };
    const orders = { issuer: 'staff', ...client, audience: 'https://o.example/', ...more };
    const staff = { issuer: provider.issuer, audience: 'orders' };
    const rules = [{ id: 'all', path: '/**', exchange: 'orders' }];
    await writeFile(file, JSON.stringify({ issuers: { staff }, exchanges: { orders }, rules }));
    const prover = createDpopClient();
    const isBound = 'cnf' in claims;
    const token = await provider.sign({ aud: 'orders', ...claims, ...(isBound && { cnf: { jkt: prover.jkt } }) });
    const { authorization, dpop } = prover.headers(token, { url: `${api}/a` });
    const input = isBound ? `Authorization: ${authorization}\nDPoP: ${dpop}\n` : token;
    const ended = await runCommand(['explain', '--json', '--rules', file, '--url', `${api}/a`], environment, input);
    expect([ended.status, JSON.parse(ended.stdout)]).toMatchObject([status, expected]);
    expect(provider.requests('/oauth/token')).toBe(0);
  },
);

it('a bound token whose key is not known, for a rule with an exchange → undecided', async () => {
  const file = join(folder, 'exchange-without-keys.json');
  const orders = { issuer: 'staff', clientId: 'gate', clientSecretFile: 'none', audience: 'https://o.example/' };
  const staff = { issuer: provider.issuer, audience: 'orders' };
  const rules = [{ id: 'all', path: '/**', exchange: 'orders' }];
  await writeFile(file, JSON.stringify({ issuers: { staff }, exchanges: { orders }, rules }));
  const prover = createDpopClient();
  const token = await provider.sign({ aud: 'orders', cnf: { jkt: prover.jkt } });
  const { authorization, dpop } = prover.headers(token, { url: `${api}/a` });
  const input = `Authorization: ${authorization}\nDPoP: ${dpop}\n`;
  const args = ['explain', '--json', '--offline', '--rules', file, '--url', `${api}/a`];
  const ended = await runCommand(args, environment, input);
  const explanation = JSON.parse(ended.stdout) as Explanation;
  expect([ended.status, explanation.verdict, explanation.reason]).toEqual([69, 'undecided', undefined]);
});

describe('an opaque token of an issuer with introspection', () => {
  const opaque = 'Zk3PjB9vQw2mX7tL';
  let introspected: string;
  beforeAll(async () => {
    introspected = join(folder, 'introspected.json');
    const endpoint = new URL('/introspect', provider.issuer).href;
    const introspection = { endpoint, clientId: 'gate', clientSecretFile: join(folder, 'secret') };
    const staff = { issuer: provider.issuer, audience: 'orders', introspection };
    const client = { clientId: 'gate', clientSecretFile: join(folder, 'secret') };
    const exchanges = { orders: { issuer: 'staff', ...client, audience: 'https://o.example/' } };
    const rules = [
      { id: 'read', path: '/**', scopes: ['read'] },
      { id: 'orders', path: '/orders', exchange: 'orders' },
    ];
    await writeFile(join(folder, 'secret'), 'secret');
    await writeFile(introspected, JSON.stringify({ issuers: { staff }, exchanges, rules }));
  });
  const explainOpaque = (...args: readonly string[]) =>
    runCommand(['explain', '--json', '--rules', introspected, '--url', `${api}/a`, ...args], environment, opaque);
  const answer = (more: object): void => {
    const active = { active: true, iss: provider.issuer, aud: 'orders', sub: 'ann', exp: Date.now() / 1000 + 60 };
    provider.serve('/introspect', (response) => void response.end(JSON.stringify({ ...active, ...more })));
  };

  it.each([
    ['active, with the scope', { scope: 'read' }, 0, { verdict: 'admitted' }],
    ['active, without the scope', {}, 1, { reason: 'insufficient_scope' }],
    ['inactive', { active: false }, 1, { reason: 'inactive_token' }],
  ])('%s → as the gate decides', async (_answer, more, status, expected) => {
    answer(more);
    const ended = await explainOpaque();
    expect([ended.status, JSON.parse(ended.stdout)]).toMatchObject([status, expected]);
  });

  it('bound by its response, and a rule with an exchange → exchange_refused, as the gate decides', async () => {
    const prover = createDpopClient();
    answer({ cnf: { jkt: prover.jkt } });
    const { authorization, dpop } = prover.headers(opaque, { url: `${api}/orders` });
    const input = `Authorization: ${authorization}\nDPoP: ${dpop}\n`;
    const args = ['explain', '--json', '--rules', introspected, '--url', `${api}/orders`];
    const ended = await runCommand(args, environment, input);
    expect([ended.status, JSON.parse(ended.stdout)]).toMatchObject([1, { reason: 'exchange_refused' }]);
  });

  it('--offline → undecided, and nothing is sent', async () => {
    answer({ scope: 'read' });
    const before = provider.requests('/introspect');
    const ended = await explainOpaque('--offline');
    expect([ended.status, JSON.parse(ended.stdout).verdict]).toEqual([69, 'undecided']);
    expect(provider.requests('/introspect')).toBe(before);
  });

  it('no file with the secret → 78, and its setting', async () => {
    await rm(join(folder, 'secret'));
    const stderr = expect.stringMatching(/^portcullis: /);
    expect(await explainOpaque()).toMatchObject({ status: 78, stdout: '', stderr });
  });
});
