import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readFlags } from '../../../src/cli/commands/flags.ts';
import { doctorChecks, findings, ok, problem } from '../../../src/cli/doctor/finding.ts';
import { formatFindings } from '../../../src/cli/doctor.ts';
import { formatPage } from '../../../src/cli/explain/reason-page.ts';
import { readTerminalStyle } from '../../../src/cli/terminal-style.ts';
import { plainStyle } from '../../../src/explain/terminal-text.ts';
import { runCommand } from '../../support/command-runs.ts';

const settings = { IDP_DOMAIN: 'localhost:9', IDP_AUDIENCE: 'urn:api' };

describe('the command', () => {
  it.each([
    [['--only', 'nothing']],
    [['--peer', 'ftp://a']],
    [['--from-outside']],
    [['--timeout', 'soon']],
    [['--token-file', '/nowhere']],
    [['--dpop-key-file', '/dev/null']],
    [['--client-cert', '/nowhere']],
    [['--client-cert', 'package.json']],
  ])('%j → 64 and where the help is', async (args) => {
    const { status, stdout, stderr } = await runCommand(['doctor', ...args], settings);
    expect([status, stdout]).toEqual([64, '']);
    expect(stderr).toMatch(/^portcullis: .*\.\nFlags and examples: portcullis doctor --help\n$/);
  });

  it('--only with an unknown check → list of the checks', async () => {
    const { stderr } = await runCommand(['doctor', '--only', 'clock,nothing'], settings);
    expect(stderr.split('\n')[0]).toMatch(/^portcullis: --only: use any of provider, tls, clock, .*commas\.$/);
  });

  it('invalid settings, or none and no URL → 78; an unknown flag → 64', async () => {
    expect((await runCommand(['doctor'], { ...settings, PORT: 'x' })).status).toBe(78);
    expect((await runCommand(['doctor'], {})).status).toBe(78);
    expect((await runCommand(['doctor', '--unknown'], settings)).status).toBe(64);
  });

  it('skipped checks → one line with the reasons', async () => {
    const { stdout } = await runCommand(['doctor', '--only', 'url,dpop,redis,revocation,rules'], settings);
    expect(stdout.split('\n')).toEqual([
      'not checked: url (needs --from-outside URL); redis (no store is in Redis); revocation (LOGOUT_CLIENTS is not set); rules (RULES is not set); dpop (needs --peer URL at least twice)',
      '0 ok, 0 warnings, 0 failures, 5 not checked',
      '',
    ]);
  });
});

describe('findings', () => {
  it('every problem has a row in the table of the docs, and a page of explain', () => {
    const docs = readFileSync('docs/explain.md', 'utf8');
    for (const name of Object.keys(findings)) {
      expect(docs).toContain(`<a id="${name}"></a>`);
      expect(formatPage(name)).toContain(`### ${name}`);
    }
    for (const name of Object.keys(doctorChecks)) expect(formatPage(name)).toContain('Check of portcullis doctor');
  });

  it('control characters and long strings → escaped and bounded', () => {
    const { seen, fix } = problem('issuer_differs', `\x1b[2J${'x'.repeat(1000)}`, { fix: 'a\u202eb' });
    expect(seen).toMatch(/^\\u\{1b\}\[2Jx+… \(1004 characters\)$/);
    expect(fix).toBe('a\\u{202e}b');
  });

  it('short fix → same line; long fix → next line', () => {
    const text = formatFindings(
      [
        problem('clock_behind', 'off', { fix: 'timedatectl set-ntp true' }),
        { ...problem('certificate_name', 'x'.repeat(100), { fix: 'Correct ISSUER.' }), issuer: 'staff' },
        ok('provider', 'responds'),
      ],
      plainStyle,
    );
    expect(text.split('\n')).toEqual([
      'clock      FAIL  clock_behind: off      fix: timedatectl set-ntp true',
      `tls        FAIL  certificate_name: staff: ${'x'.repeat(100)}`,
      '                 fix: Correct ISSUER.',
      'provider   ok    responds',
      '1 ok, 0 warnings, 2 failures',
      '',
    ]);
  });
});

describe('terminal style', () => {
  const paint = (isTTY: boolean, environment: Record<string, string>) =>
    readTerminalStyle(environment, { isTTY }).paint('bad', 'x');

  it('colours only on a terminal, and not with NO_COLOR or a dumb one', () => {
    expect(paint(true, {})).toContain('\x1b[31m');
    expect(paint(false, {})).toBe('x');
    expect(paint(true, { NO_COLOR: '1' })).toBe('x');
    expect(paint(true, { TERM: 'dumb' })).toBe('x');
    expect(readTerminalStyle({ TERM: 'dumb' }, { isTTY: true }).characters).toBe('ascii');
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
