import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { runCommand } from '../support/command-runs.ts';
import { openGate, tell, useGate } from '../support/gate-process.ts';
import { send } from '../support/http-client.ts';
import { openService } from '../support/open-service.ts';
import { needs } from '../support/programs.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { startInVain } from '../support/variant-service.ts';

const provider = await useTestProvider();

const open = (path: string) => ({ rules: [{ id: `open-${path.slice(1)}`, path, access: 'open' }] });

describe('rules that change', async () => {
  const gate = await useGate(provider, open('/one'));
  /** Asks until the answer has the status. */
  const settle = (path: string, expected: number): Promise<void> =>
    expect.poll(async () => (await gate.ask({ path })).status).toBe(expected);

  it('a changed file takes effect, without a signal', async () => {
    await settle('/one', 200);
    await gate.writeRules(open('/two'));
    await settle('/two', 200);
    expect(await gate.ask({ path: '/one' })).toMatchObject({ status: 403 });
    expect(await gate.metrics()).toMatch(/^portcullis_rules_generation 2$/m);
  });

  it('a wrong file changes nothing, and one line of level error names it', async () => {
    const before = gate.logs.length;
    await gate.writeRules('{ "rules": [{ "id": "x", "path": "/three", "acces": "open" }] }');
    gate.signal('SIGHUP');
    const line = await gate.findLog(({ event }) => event === 'rules_kept');
    expect(line.level).toBe('error');
    expect(line['problem']).toMatch(/rules\.json:1:\d+: There is no member "acces" here/);
    expect(await gate.ask({ path: '/two' })).toMatchObject({ status: 200 });
    expect(await gate.metrics()).toMatch(/^portcullis_rules_last_reload_ok 0$/m);
    expect(gate.logs.slice(before).some(({ event }) => event === 'rules_loaded')).toBe(false);
  });

  it('rules with a new issuer → its tokens are accepted once the rules are active', async () => {
    const token = await provider.sign();
    await gate.writeRules({
      issuers: { staff: { issuer: provider.issuer, audience: provider.audience } },
      rules: [{ id: 'all', path: '/**' }],
    });
    gate.signal('SIGHUP');
    await settle('/five', 401);
    expect(await gate.metrics()).toMatch(/^portcullis_rules_last_reload_ok 1$/m);
    const answer = await gate.ask({ path: '/five', headers: ['Authorization', `Bearer ${token}`] });
    expect(answer.status).toBe(200);
  });

  it('rules that name a resource: challenges link to its metadata, whatever host the client names', async () => {
    await gate.writeRules({
      resource: 'https://api.example',
      issuers: { staff: { issuer: provider.issuer, audience: provider.audience } },
      rules: [{ id: 'linked', path: '/**' }],
    });
    gate.signal('SIGHUP');
    await gate.findLog(({ event, generation }) => event === 'rules_loaded' && generation === 4);
    await settle('/six', 401);
    const { headers } = await gate.ask({ path: '/six', host: 'evil.example' });
    const url = 'https://api.example/.well-known/oauth-protected-resource';
    expect(headers.get('www-authenticate')).toContain(`resource_metadata="${url}"`);
    expect(headers.get('www-authenticate')).not.toContain('evil.example');
  });

  const keepsItsRules = async (put: (path: string) => void, problem: RegExp): Promise<void> => {
    const before = gate.logs.length;
    await gate.replaceRules(put);
    gate.signal('SIGHUP');
    await expect
      .poll(() => gate.logs.slice(before).findLast(({ event }) => event === 'rules_kept')?.['problem'])
      .toMatch(problem);
    expect(await gate.ask({ path: '/six' })).toMatchObject({ status: 401 });
  };

  it('a folder instead of the file → the old rules stay active', () =>
    keepsItsRules((path) => void mkdirSync(path), /contains no rules file/));

  it('a pipe instead of the file → the old rules stay active', needs('mkfifo'), () =>
    keepsItsRules((path) => void execFileSync('mkfifo', [path]), /is not a regular file/),
  );

  it('SIGTERM ends it with 0', async () => {
    expect(await gate.stop()).toBe(0);
  });
});

// A thousand of them, with tokens and a look at the memory: `npm run faults -- --only gate-reloads`.
it('reloads under load: every decision is by the old rules or by the new ones, none is wrong', {}, async () => {
  const gate = await openGate(provider, open('/always'));
  onTestFinished(async () => void (await gate.stop()));
  let reloading = true;
  const statuses = new Set<string>();
  const load = Array.from({ length: 4 }, async () => {
    while (reloading) {
      const [always, never, either] = await Promise.all([
        gate.ask({ path: '/always' }),
        gate.ask({ path: '/never' }),
        gate.ask({ path: '/either' }),
      ]);
      statuses.add(`always ${always.status}`).add(`never ${never.status}`);
      expect([200, 403]).toContain(either.status);
    }
  });
  const always = open('/always').rules;
  for (let i = 1; i <= 12; i++) {
    const generation = new RegExp(`^portcullis_rules_generation ${i + 1}$`, 'm');
    await gate.writeRules({ rules: i % 2 === 0 ? always : [...always, ...open('/either').rules] });
    gate.signal('SIGHUP');
    while (!generation.test(await gate.metrics()));
    expect((await gate.ask({ path: '/either' })).status).toBe(i % 2 === 0 ? 403 : 200);
  }
  reloading = false;
  await Promise.all(load);
  expect([...statuses].toSorted()).toEqual(['always 200', 'never 403']);
});

describe('the start', () => {
  it('wrong rules → every problem on stderr, exit 78', async () => {
    const { end, stderr } = await startInVain(openGate(provider, { rules: [{ id: 'a' }, { path: '/' }] }));
    expect(end.code).toBe(78);
    expect(stderr).toMatch(/rules\.json:1:\d+: "path" is missing.*\n.*rules\.json:1:\d+: "id" is missing/);
  });

  it.each<[string, readonly string[], Readonly<Record<string, string>>, RegExp]>([
    ['nothing', [], {}, /--issuer: It is required without --rules[\s\S]*--audience: It is required/],
    ['no audience', ['--issuer', 'id.example'], {}, /--audience: It is required without --rules/],
    ['rules and an issuer', ['--rules', 'x.json', '--issuer', 'id.example'], {}, /omit --rules/],
    ['trust in all', ['--issuer', 'id.example', '--audience', 'a'], { TRUST_PROXY: 'true' }, /TRUST_PROXY: "true"/],
    [
      'trust in every address',
      ['--issuer', 'id.example', '--audience', 'a'],
      { TRUST_PROXY: '128.0.0.0/1,0.0.0.0/1' },
      /TRUST_PROXY: "128\.0\.0\.0\/1,0\.0\.0\.0\/1"/,
    ],
    ['a missing file', ['--rules', '/nowhere/rules.json'], {}, /\/nowhere\/rules\.json cannot be read \(ENOENT\)/],
    ['an issuer that is none', ['--issuer', 'http://id.example/', '--audience', 'a'], {}, /ISSUER/],
  ])('%s → 78 with what to do', async (_claim, args, environment, message) => {
    const { status, stderr } = await runCommand(['gate', ...args], environment);
    expect(status).toBe(78);
    expect(stderr).toMatch(message);
  });

  it.each([
    ['--rules', ['--rules', '/nowhere/a.json', '--rules=/nowhere/a.json']],
    ['--upstream', ['--rules', '/nowhere/a.json', '--upstream=http://127.0.0.1:1', '--upstream', 'http://127.0.0.1:2']],
  ])('%s twice → 64', async (flag, args) => {
    expect(await runCommand(['gate', ...args], {})).toMatchObject({
      status: 64,
      stderr: `portcullis: ${flag} is written twice. Write it once.\nFlags and examples: portcullis gate --help\n`,
    });
  });

  it('serve with rules → refused, because they would have no effect', async () => {
    const { status, stderr } = await runCommand(['serve', '--rules', 'x.json'], {});
    expect([status, stderr]).toEqual([78, expect.stringContaining('portcullis gate')]);
  });
});

describe('without rules', () => {
  const openPlain = async (more: readonly string[], environment: Readonly<Record<string, string>> = {}) => {
    const gate = await openService({
      command: 'gate',
      args: ['--issuer', provider.issuer, '--audience', provider.audience, ...more],
      environment: { NODE_EXTRA_CA_CERTS: provider.caFile, ...environment },
    });
    onTestFinished(async () => void (await gate.stop()));
    return gate;
  };

  it('one issuer, audience and scope protect everything', async () => {
    const gate = await openPlain(['--scope', 'read:messages']);
    const ask = async (claims: object | undefined) => {
      const headers = claims === undefined ? [] : ['Authorization', `Bearer ${await provider.sign({ ...claims })}`];
      return send(gate.url, '/forward-auth', { headers: tell({ path: '/any/thing', headers }) });
    };
    expect(await ask(undefined)).toMatchObject({ status: 401 });
    expect(await ask({ scope: 'other' })).toMatchObject({ status: 403 });
    const { status, headers } = await ask({});
    expect(status).toBe(200);
    expect(headers.get('x-auth-scope')).toBe('read:messages');
  });

  it('untrusted peer → 403 for every path', async () => {
    const gate = await openPlain([], { TRUST_PROXY: '10.0.0.0/8' });
    const headers = tell({ path: '/', headers: ['Authorization', `Bearer ${await provider.sign()}`] });
    for (const path of ['/forward-auth', '/ext-authz/', '/other']) {
      const answer = await send(gate.url, path, { headers });
      expect(answer.status).toBe(403);
      expect(answer.json).toMatchObject({ detail: { error: 'access_denied' } });
    }
    await gate.findLog(({ reason }) => reason === 'untrusted_peer');
  });
});
