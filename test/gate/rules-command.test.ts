import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCommand, runProcess } from '../support/command-runs.ts';
import { useFolder } from '../support/folder.ts';

const folder = useFolder();

function write(name: string, content: unknown): string {
  const file = join(folder, name);
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content, undefined, 1));
  return file;
}

async function run(args: readonly string[], start = runCommand) {
  const { status, stdout, stderr } = await start(['rules', ...args], {});
  return { status, stdout: stdout.replaceAll(`${folder}/`, ''), stderr: stderr.replaceAll(`${folder}/`, '') };
}

const staff = { issuers: ['staff'] };
const good = write('good.json', {
  issuers: {
    staff: { issuer: 'https://id.example/', audience: 'orders' },
    partner: { issuer: 'https://partner.example/', audience: ['orders', 'other'] },
  },
  rules: [
    { id: 'health', path: '/healthz', access: 'open' },
    { ...{ id: 'write', hosts: ['api.example'], path: '/orders/**', methods: ['POST'] }, ...staff, scopes: ['write'] },
    { id: 'bound', path: '/bound', ...staff, dpop: 'required' },
    { id: 'closed', path: '/closed', access: 'deny' },
    { id: 'perhaps', path: '/perhaps', access: 'optional', issuers: ['partner'] },
    { id: 'watched', path: '/watched', mode: 'report', ...staff },
    { id: 'packages', path: '/packages/*', access: 'open', encodedSlash: 'allow' },
    { id: 'cors', path: '/cors', methods: ['PUT'], ...staff, preflight: 'allow' },
  ],
});
const api = 'https://api.example';
const preflight = { origin: 'https://app.example', 'access-control-request-method': 'PUT' };

const cases = [
  { url: `${api}/healthz`, expect: 'allowed', rule: 'health' },
  { method: 'HEAD', url: `${api}/healthz?x=1`, expect: 'allowed' },
  { method: 'POST', url: `${api}/orders/1`, expect: 'missing_credentials', rule: 'write' },
  { method: 'POST', url: `${api}/orders/1`, token: { issuer: 'staff' }, expect: 'insufficient_scope' },
  { method: 'POST', url: `${api}/orders/1`, token: { issuer: 'staff', scope: 'a write' }, expect: 'allowed' },
  { method: 'POST', url: `${api}/orders/1`, token: { issuer: 'partner', scope: 'write' }, expect: 'invalid_issuer' },
  { method: 'POST', url: `${api}/orders/1`, token: { issuer: 'staff', aud: 'x' }, expect: 'invalid_audience' },
  { method: 'POST', url: `${api}/orders/1`, token: { issuer: 'staff', exp: 1 }, expect: 'expired' },
  { method: 'POST', url: `${api}/orders/1`, dpop: true, token: { issuer: 'staff', scope: 'write' }, expect: 'allowed' },
  { method: 'GET', url: `${api}/orders/1`, expect: 'no_rule' },
  { method: 'POST', url: 'https://other.example/orders/1', expect: 'no_rule' },
  { url: `${api}/bound`, token: { issuer: 'staff' }, expect: 'bearer_not_accepted' },
  { url: `${api}/bound`, dpop: true, token: { issuer: 'staff' }, expect: 'allowed' },
  { url: `${api}/closed`, token: { issuer: 'staff' }, expect: 'denied_by_rule' },
  { url: `${api}/perhaps`, expect: 'allowed' },
  { url: `${api}/perhaps`, token: { issuer: 'partner', exp: 1 }, expect: 'expired' },
  { url: `${api}/watched`, expect: 'missing_credentials', rule: 'watched' },
  { url: `${api}/a/../closed`, expect: 'ambiguous_path' },
  { url: `${api}/packages/@a%2Fb`, expect: 'allowed', rule: 'packages' },
  { url: `${api}/packages/..%2Fb`, expect: 'ambiguous_path' },
  { url: `${api}/healthz%2Fb`, expect: 'ambiguous_path' },
  { method: 'OPTIONS', url: `${api}/cors`, headers: preflight, expect: 'allowed', rule: 'cors' },
  { method: 'OPTIONS', url: `${api}/cors`, headers: { origin: 'https://app.example' }, expect: 'no_rule' },
  { method: 'PUT', url: `${api}/cors`, headers: preflight, expect: 'missing_credentials' },
  { method: 'OPTIONS', url: `${api}/bound`, headers: preflight, expect: 'missing_credentials' },
];

describe('rules check', () => {
  it('good rules → 0', async () => {
    const stdout = 'good.json: 8 rules, no problems\n';
    expect(await run(['check', good], runProcess)).toEqual({ status: 0, stdout, stderr: '' });
  });

  it('every problem with its place, in the order of the file → 1', async () => {
    const bad = write('bad.json', '{ "rules": [\n{ "id": "a", "path": "b" },\n{ "id": "c" }\n], "extra": 1 }');
    const { status, stdout, stderr } = await run(['check', bad]);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr.split('\n').map((line) => line.slice(0, 39))).toEqual([
      'bad.json:2:14: "path" is not valid. Wri',
      'bad.json:3:1: "path" is missing. Write ',
      'bad.json:4:4: There is no member "extra',
      '',
    ]);
  });

  it('a rule that no request can reach → a warning with its place, what is wrong and what to write; still 0', async () => {
    const paths = Object.entries({ rest: '/a/**', a: '/a', below: '/a/*/**', encoded: '/packages/a%2Fb' });
    const rules = paths.map(([id, path]) => `\n  ${JSON.stringify({ id, path, access: 'open' })}`);
    const shadowed = write('shadowed.json', `{ "rules": [${rules.join()}] }`);
    expect(await run(['check', shadowed])).toEqual({
      status: 0,
      stdout: 'shadowed.json: 4 rules, no problems, 2 warnings\n',
      stderr: `shadowed.json:2:3: warning: no request can reach the rule "rest": the rules "a" and "below" are more specific and take all of its requests. Remove the rule, or remove one of the more specific rules.
shadowed.json:5:3: warning: no request can reach the rule "encoded": the gate refuses its path. A path with %2F needs "encodedSlash": "allow".
`,
    });
  });

  it('a file that is not there → 1', async () => {
    const { status, stderr } = await run(['check', join(folder, 'none.json')]);
    expect([status, stderr]).toEqual([1, 'portcullis: none.json cannot be read (ENOENT). Name a readable file.\n']);
  });

  it.each([[[]], [['check']], [['check', good, good]], [['test', good]], [['look', good]]])(
    '%j → 64 and where the help is',
    async (args) => {
      const usage = 'write check FILE, test FILE CASES, which FILE METHOD URL, or replay AUDIT FILE.';
      const stderr = `portcullis: ${usage}\nFlags and examples: portcullis rules --help\n`;
      expect(await run(args)).toMatchObject({ status: 64, stderr });
    },
  );
});

describe('rules which', () => {
  const only = 'write: the only match: an exact host (api.example), path /orders/**, methods POST\n';
  const none = 'none: no rule matches, so the gate responds with 403\n';
  it.each<[string, string, number, string]>([
    ['POST', `${api}/orders/17`, 0, only],
    ['GET', `${api}/orders/17`, 1, `${none}  not write: it is for POST\n`],
    ['POST', 'https://other.example/orders', 1, `${none}  not write: it is for api.example\n`],
    ['GET', `${api}/healthz/`, 0, 'health: the only match: any host, path /healthz, any method\n'],
    ['GET', `${api}/a/../healthz`, 1, 'none: the path is ambiguous, so the gate responds with 400\n'],
  ])('%s %s → %i', async (method, url, status, stdout) => {
    expect(await run(['which', good, method, url])).toEqual({ status, stdout, stderr: '' });
  });

  it('no match → the nearest rules first: of this host before other hosts', async () => {
    const rules = write('near.json', {
      rules: [
        { id: 'other', hosts: ['other.example'], path: '/**', access: 'open' },
        { id: 'any', path: '/away', access: 'open' },
        { id: 'same', path: '/reports/{id}', access: 'open' },
        { id: 'reports', hosts: ['api.example'], path: '/reports/*/*', access: 'open' },
        { id: 'written', hosts: ['api.example'], path: '/reports', methods: ['POST'], access: 'open' },
      ],
    });
    const { stdout } = await run(['which', rules, 'GET', `${api}/reports`]);
    expect(stdout.split('\n').slice(1)).toEqual([
      '  not written: it is for POST',
      '  not same: it is for the path /reports/{id}',
      '  not reports: it is for the path /reports/*/*',
      '  not other: it is for other.example',
      '',
    ]);
  });

  it('several matches → the most specific first', async () => {
    const rules = write('which.json', {
      rules: [
        { id: 'all', path: '/**', access: 'open' },
        { id: 'host', hosts: ['*.example'], path: '/**', access: 'open' },
        { id: 'tenant', hosts: ['{tenant}.example'], path: '/{any}', access: 'open' },
      ],
    });
    const { stdout } = await run(['which', rules, 'GET', `${api}/x`]);
    expect(stdout.match(/\w+(?=: )/g)?.filter((id) => ['all', 'host', 'tenant'].includes(id))).toEqual([
      ...['tenant', 'host', 'all'],
    ]);
  });

  it.each([[['which', good, 'GET']], [['which', good, 'G ET', api]], [['which', good, 'GET', '/orders']]])(
    '%j → usage, 64',
    async (args) => {
      expect((await run(args)).status).toBe(64);
    },
  );

  it('a method in lower case → usage, 64: write it in upper case', async () => {
    const { status, stderr } = await run(['which', good, 'get', `${api}/healthz`]);
    expect({ status, stderr }).toMatchObject({ status: 64, stderr: expect.stringContaining('write GET.') });
  });
});

describe('a folder of rules files', () => {
  const base = {
    issuers: { staff: { issuer: 'https://id.example/', audience: 'a' } },
    upstreams: { orders: 'http://a' },
  };
  const orders = { rules: [{ id: 'orders-all', hosts: ['orders.example'], path: '/orders/**', upstream: 'orders' }] };
  const rule = { ...orders.rules[0], access: 'open' };
  let count = 0;
  const writeFolder = (files: Readonly<Record<string, unknown>>): string => {
    const name = `set-${count++}`;
    mkdirSync(join(folder, name));
    for (const [file, content] of Object.entries(files)) write(join(name, file), content);
    return join(folder, name);
  };

  it('valid files → one set; hidden files are ignored', async () => {
    const set = writeFolder({ 'a.json': base, 'b.yaml': JSON.stringify(orders), '.c.json': '{', 'readme.md': '#' });
    expect(await run(['check', set])).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('1 rule, no problems'),
    });
  });

  it.each<[string, Readonly<Record<string, unknown>>, string]>([
    ['scope, as before', { 'b.json': { ...orders, scope: {} } }, '"scope" was removed. Remove it. The code owners'],
    ['an issuer twice', { 'b.json': orders, 'c.json': base }, 'is in "issuers" of another file too'],
    [
      'a member twice',
      { 'b.json': { rules: [rule], forward: ['authorization'] }, 'c.json': { forward: ['authorization'] } },
      '"forward" is in another file too',
    ],
    [
      'an id twice',
      { 'b.json': orders, 'c.json': { rules: [{ id: 'orders-all', path: '/x', access: 'open' }] } },
      'is also on line',
    ],
    ['no rules', {}, '"rules" is missing'],
    ['a file that is not JSON', { 'b.json': '{' }, 'b.json:1:'],
  ])('%s → 1', async (_what, files, problem) => {
    const { status, stderr } = await run(['check', writeFolder({ 'a.json': base, ...files })]);
    expect([status, stderr]).toEqual([1, expect.stringContaining(problem)]);
  });

  it('a file with an invalid form → the problems of the other files too', async () => {
    const rules = [{ id: 'a', path: '/a', acces: 'open' }];
    const others = { rules: [{ id: 'b', path: '/b', issuers: ['nobody'] }] };
    const { stderr } = await run(['check', writeFolder({ 'a.json': { ...base, rules }, 'b.json': others })]);
    expect(stderr).toMatch(/a\.json:\d+:\d+: There is no member "acces" here\. Did you mean access\?/);
    expect(stderr).toMatch(/b\.json:\d+:\d+: There is no issuer "nobody" in this file/);
    expect(stderr.trim().split('\n')).toHaveLength(2);
  });

  it('a {name} that no condition reads → a warning', async () => {
    const rules = [
      { id: 'a', path: '/a/{tenant}', hosts: ['{tenant2}.example'], access: 'open' },
      { id: 'b', path: '/b/{tenant}/{other}', when: 'token.tenant == path . tenant' },
      { id: 'c', path: '/c/{tenant}', when: 'path["tenant"] == token.tenant' },
    ];
    const file = write('names.json', { issuers: { main: { issuer: 'https://id.example/', audience: 'a' } }, rules });
    const { stderr } = await run(['check', file]);
    expect(stderr.match(/nothing reads \S+ of the rule "\w"/g)).toEqual([
      'nothing reads {tenant} of the rule "a"',
      'nothing reads {tenant2} of the rule "a"',
      'nothing reads {other} of the rule "b"',
    ]);
  });

  it('placeholders of other routers and rules without upstream → warnings', async () => {
    const rules = [{ id: 'a', path: '/a/:id', access: 'open' }];
    const { status, stderr } = await run(['check', writeFolder({ 'a.json': { ...base, rules } })]);
    expect(status).toBe(0);
    expect(stderr).toContain('warning: ":id" in the rule "a" is a literal. Write {name} or * for any one segment.');
    expect(stderr).toContain('warning: the rule "a" names no upstream, so it needs UPSTREAM.');
  });
});

describe('rules test', () => {
  it('every decision there is, as expected → 0', async () => {
    const stdout = `cases.json: ${cases.length} cases, all as expected\n`;
    const outcome = await run(['test', good, write('cases.json', cases)]);
    expect(outcome).toEqual({ status: 0, stdout, stderr: '' });
  });

  it('scope, permissions and an unknown issuer → as at the gate, 0', async () => {
    const places = { scopeClaim: 'scp', permissionsClaim: ['realm_access', 'roles'] };
    const rules = write('claims.json', {
      issuers: { staff: { issuer: 'https://id.example/', audience: 'a', ...places } },
      rules: [{ id: 'all', path: '/**', scopes: ['read'], permissions: ['admin'] }],
    });
    const permissions = ['admin'];
    const own = [
      { url: api, token: { scope: 'read', permissions }, expect: 'allowed' },
      { url: api, token: { issuer: 'staff', scope: 'read', permissions }, expect: 'allowed' },
      { url: api, token: { scp: 'read', realm_access: { roles: permissions } }, expect: 'allowed' },
      { url: api, token: { scope: 'read', scp: 'write', permissions }, expect: 'insufficient_scope' },
      { url: api, token: { scope: 'write', permissions }, expect: 'insufficient_scope' },
      { url: api, token: { scope: 'read' }, expect: 'missing_permission' },
      { url: api, token: { scope: 'read', permissions, realm_access: {} }, expect: 'missing_permission' },
      { url: api, token: { issuer: 'stuff', scope: 'read', permissions }, expect: 'invalid_issuer' },
      { url: api, token: { iss: 'https://other.example/', scope: 'read', permissions }, expect: 'invalid_issuer' },
    ];
    const stdout = `own.json: ${own.length} cases, all as expected\n`;
    expect(await run(['test', rules, write('own.json', own)])).toEqual({ status: 0, stdout, stderr: '' });
  });

  it('decisions that differ → each with its line, 1', async () => {
    const file = write(
      'differing.yaml',
      `cases:\n  - { url: '${api}/healthz', expect: no_rule }\n  - { url: '${api}/closed', expect: denied_by_rule, rule: health }\n  - { url: '${api}/healthz', expect: allowed }\n`,
    );
    expect(await run(['test', good, file])).toEqual({
      status: 1,
      stdout: `differing.yaml:2: GET ${api}/healthz: expected no_rule, came out as allowed by rule health
differing.yaml:3: GET ${api}/closed: expected denied_by_rule by rule health, came out as denied_by_rule by rule closed
differing.yaml: 3 cases, 2 not as expected
`,
      stderr: '',
    });
  });

  it.each([
    ['no list', {}, 'cases-bad.json:1:1: The file does not contain cases.'],
    ['no expectation', [{ url: api }], 'cases-bad.json:2:2: "expect" is missing or not valid. Write "allowed", or'],
    ['no such reason', [{ url: api, expect: 'ok' }], 'cases-bad.json:4:3: "expect" is missing or not valid.'],
    [
      'a reason of other words',
      [{ url: api, expect: 'insufficient_permissions' }],
      'Did you mean insufficient_scope or missing_permission?',
    ],
    ['a misspelled reason', [{ url: api, expect: 'no_rul' }], 'Did you mean no_rule?'],
    ['a member that there is not', [{ url: api, expect: 'allowed', path: '/' }], 'A case has no member "path".'],
    ['a path', [{ url: '/a', expect: 'allowed' }], '"url" is missing or not valid. Write the URL as the client'],
  ])('%s → 1', async (_claim, content, message) => {
    const { status, stderr } = await run(['test', good, write('cases-bad.json', content)]);
    expect([status, stderr]).toEqual([1, expect.stringContaining(message)]);
  });
});
