import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readFlags } from '../../../src/cli/commands/flags.ts';
import { createDeployment } from '../../../src/cli/doctor/deployments.ts';
import { createContext, runChecks } from '../../../src/cli/doctor/examination.ts';
import { findingCodes, ok, problem } from '../../../src/cli/doctor/finding.ts';
import { formatFindings } from '../../../src/cli/doctor/report.ts';
import { readTerminalStyle } from '../../../src/cli/terminal-style.ts';
import { plainStyle } from '../../../src/explain/terminal-text.ts';
import { runCommand, runProcess } from '../../support/command-runs.ts';

const settings = { IDP_DOMAIN: 'localhost:9', IDP_AUDIENCE: 'urn:api' };

describe('the command', () => {
  it('--list-checks → each check with its title', async () => {
    const { status, stdout } = await runProcess(['doctor', '--list-checks'], {});
    expect(status).toBe(0);
    const names = stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => /^(\w+) +\S.*\.$/.exec(line)?.[1]);
    expect(names).toEqual([
      'provider',
      'keys',
      'tls',
      'clock',
      'outside',
      'headers',
      'cors',
      'admin',
      'audiences',
      'nonces',
      'replay',
      'redis',
      'revocation',
      'rules',
      'certificate',
      'ports',
      'upstream',
      'cache',
    ]);
  });

  it.each([
    [['--only', 'nothing']],
    [['--peer', 'ftp://a']],
    [['--from-outside']],
    [['--timeout', 'soon']],
    [['--token-file', '/dev/null']],
    [['--token-file', '/dev/null', '--dpop-key-file', '/dev/null']],
  ])('%j → 64 and where the help is', async (args) => {
    const { status, stdout, stderr } = await runCommand(['doctor', ...args], settings);
    expect([status, stdout]).toEqual([64, '']);
    expect(stderr).toMatch(/^portcullis: .*\.\nFlags and examples: portcullis doctor --help\n$/);
  });

  it('--only with an unknown check → list of the checks', async () => {
    const { stderr } = await runCommand(['doctor', '--only', 'clock,nothing'], settings);
    expect(stderr.split('\n')[0]).toMatch(/^portcullis: --only: use any of provider, keys, tls, clock, .*commas\.$/);
  });

  it('invalid settings, or none and no URL → 78; an unknown flag → 64', async () => {
    expect((await runCommand(['doctor'], { ...settings, PORT: 'x' })).status).toBe(78);
    expect((await runCommand(['doctor'], {})).status).toBe(78);
    expect((await runCommand(['doctor', '--unknown'], settings)).status).toBe(64);
  });

  it('skipped checks → one line with the reasons', async () => {
    const { stdout } = await runCommand(['doctor', '--only', 'outside,replay,redis'], settings);
    expect(stdout.split('\n')).toEqual([
      'not checked: outside (needs --from-outside URL); replay (needs --peer URL at least twice); redis (the replay store is memory)',
      '0 ok, 0 warnings, 0 failures, 3 not checked',
      '',
    ]);
  });
});

describe('the examination', () => {
  const context = createContext({
    deployment: createDeployment(undefined, {}),
    outside: undefined,
    peers: [],
    credentials: undefined,
    timeout: 1000,
  });

  it('crashed check → unknown; the others run', async () => {
    const findings = await runChecks(
      [
        { id: 'one', title: '', run: () => Promise.reject(new TypeError('with a secret')) },
        { id: 'two', title: '', run: async () => [ok('good')] },
      ],
      context,
    );
    expect(findings.map(({ check, level }) => [check, level])).toEqual([
      ['one', 'unknown'],
      ['two', 'ok'],
    ]);
    expect(JSON.stringify(findings)).not.toContain('secret');
  });
});

describe('findings', () => {
  it('every code that was ever used keeps its meaning', () => {
    const used =
      'D100 D101 D102 D103 D104 D105 D106 D110 D111 D112 D113 D120 D130 D131 D132 D133 D134 D140 D141 D142 D150 D151 D152 D153 D154 D155 D156 D157 D158 D159 D160 D161 D162 D170 D171 D180 D190 D200 D201 D202 D203 D210 D211 D220 D221 D222 D223 D224 D230 D231 D240 D250 D260 D261 D262 D263';
    expect(Object.keys(findingCodes).toSorted()).toEqual(used.split(' '));
  });

  it('every code has a test that breaks exactly one thing', () => {
    const files = readdirSync('test/cli/doctor').map((name) => `test/cli/doctor/${name}`);
    const tests = [...files, 'test/cli/optional-packages.test.ts'].map((file) => readFileSync(file, 'utf8')).join('\n');
    const isTested = (code: string): boolean =>
      [`toEqual(['${code}'])`, `', '${code}', ['`, `, ['${code}']],`, `', '${code}'],`].some((form) =>
        tests.includes(form),
      );
    expect(Object.keys(findingCodes).filter((code) => !isTested(code))).toEqual([]);
  });

  it('control characters and long strings → escaped and bounded', () => {
    const { seen, fix } = problem('D103', { seen: `\x1b[2J${'x'.repeat(1000)}`, fix: 'a\u202eb' });
    expect(seen).toMatch(/^\\u\{1b\}\[2Jx+… \(1004 characters\)$/);
    expect(fix).toBe('a\\u{202e}b');
  });

  it('short fix → same line; long fix → next line', () => {
    const text = formatFindings(
      [
        { check: 'clock', ...problem('D120', { seen: 'off', fix: 'timedatectl set-ntp true' }) },
        { check: 'tls', ...problem('D110', { seen: 'x'.repeat(100), fix: 'NODE_EXTRA_CA_CERTS=/a.pem' }) },
        { check: 'keys', ...ok('2 usable') },
      ],
      plainStyle,
    );
    expect(text.split('\n')).toEqual([
      'clock      FAIL  D120 off      fix: timedatectl set-ntp true',
      `tls        FAIL  D110 ${'x'.repeat(100)}`,
      '                 fix: NODE_EXTRA_CA_CERTS=/a.pem',
      'keys       ok    2 usable',
      '1 ok, 0 warnings, 2 failures',
      '',
    ]);
  });
});

describe('terminal style', () => {
  const paint = (isTTY: boolean, environment: Record<string, string>) =>
    readTerminalStyle({ isTTY, environment }).paint('bad', 'x');

  it('colours only on a terminal, and not with NO_COLOR or a dumb one', () => {
    expect(paint(true, {})).toContain('\x1b[31m');
    expect(paint(false, {})).toBe('x');
    expect(paint(true, { NO_COLOR: '1' })).toBe('x');
    expect(paint(true, { TERM: 'dumb' })).toBe('x');
    expect(readTerminalStyle({ isTTY: true, environment: { TERM: 'dumb' } }).characters).toBe('ascii');
  });
});

describe('flags of a command and of settings', () => {
  it('flags of the command → removed, the rest keeps its order', () => {
    const flags = readFlags('doctor', ['--peer', 'a', '--port', '1', '--peer=b', '--json', '--domain=x']);
    expect(flags).toEqual({ values: { peer: ['a', 'b'], json: true }, rest: ['--port', '1', '--domain=x'] });
  });

  it.each([
    [['--only'], '--only lacks its value.'],
    [['--only', '--json'], '--only lacks its value.'],
    [['--json=yes'], '--json takes no value.'],
    [['--only', 'a', '--only', 'b'], '--only is duplicated.'],
  ])('%j → %s', (args, problem) => {
    expect(() => readFlags('doctor', args)).toThrow(problem);
  });
});
