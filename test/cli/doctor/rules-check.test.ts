import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BentProvider, startBentProvider } from './bent-provider.ts';
import { codesOf, runDoctor } from './run-doctor.ts';

let folder: string;
let first: BentProvider;
let second: BentProvider;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-doctor-rules-'));
  [first, second] = await Promise.all([startBentProvider(), startBentProvider()]);
});
afterAll(async () => {
  await Promise.all([first.close(), second.close()]);
  await rm(folder, { recursive: true });
});

async function write(rules: readonly object[], issuers: object = {}): Promise<string> {
  const file = join(folder, 'rules.json');
  await writeFile(file, JSON.stringify({ issuers, rules }));
  return file;
}

const open = (path: string, id = path.replaceAll(/\W+/g, '-')) => ({ id: `r${id}`, path, access: 'open' });

describe('the rules of a gate', () => {
  it('valid rules → ok, with their number', async () => {
    const file = await write([open('/a'), open('/**', 'all')]);
    const { status, findings } = await runDoctor(['--only', 'rules'], { RULES: file });
    expect(findings).toMatchObject([{ level: 'ok', seen: `${file}: 2 rules` }]);
    expect(status).toBe(0);
  });

  it('--rules → checked; no rules → skipped', async () => {
    const file = await write([open('/a')]);
    expect((await runDoctor(['--only', 'rules', '--rules', file], {})).findings).toMatchObject([{ level: 'ok' }]);
    const { findings } = await runDoctor(['--only', 'rules'], { IDP_DOMAIN: 'localhost:9', IDP_AUDIENCE: 'x' });
    expect(findings).toMatchObject([{ level: 'skipped', seen: expect.stringContaining('RULES') }]);
  });

  it('invalid rule → D210 with its line', async () => {
    const file = await write([{ id: 'a', path: 'a' }]);
    const { status, findings } = await runDoctor(['--only', 'rules'], { RULES: file });
    expect(codesOf(findings)).toEqual(['D210']);
    expect(findings[0]).toMatchObject({
      seen: expect.stringMatching(/rules\.json:1:\d+: "path" is not valid/),
      fix: `portcullis rules check ${file}`,
    });
    expect(status).toBe(1);
  });

  it('invalid rules → the checks of the provider refer to rules', async () => {
    const file = await write([{ id: 'a', path: 'a' }]);
    const { findings } = await runDoctor(['--only', 'provider'], { RULES: file });
    expect(findings).toMatchObject([{ level: 'skipped', seen: 'the rules are not valid: see rules' }]);
  });

  it('missing file → D210', async () => {
    const { findings } = await runDoctor(['--only', 'rules'], { RULES: join(folder, 'gone.json') });
    expect(codesOf(findings)).toEqual(['D210']);
  });

  it('unreachable rule → D211 with its id, a warning: exit 0', async () => {
    const file = await write([open('/a/**', 'shadowed'), open('/a'), open('/a/*/**')]);
    const { status, findings } = await runDoctor(['--only', 'rules'], { RULES: file });
    expect(codesOf(findings)).toEqual(['D211']);
    expect(findings.find(({ code }) => code === 'D211')?.seen).toBe(
      `${file}:1: no request can reach the rule "rshadowed": the rules "r-a" and "r-a-" are more specific and take all of its requests`,
    );
    expect(status).toBe(0);
  });

  it('two issuers → both are checked', async () => {
    second.bend = { lead: 600 };
    const file = await write([{ id: 'all', path: '/**', issuers: ['one', 'two'] }], {
      one: { issuer: first.issuer, audience: 'x' },
      two: { issuer: second.issuer, audience: 'x' },
    });
    const environment = { RULES: file, NODE_EXTRA_CA_CERTS: first.caFile };
    const { findings } = await runDoctor(['--only', 'provider,clock,rules'], environment);
    expect(findings.map(({ check, level }) => `${check} ${level}`)).toEqual([
      ...['provider ok', 'clock ok', 'provider skipped', 'clock skipped', 'rules ok'],
    ]);
    const other = await runDoctor(['--only', 'clock'], { ...environment, NODE_EXTRA_CA_CERTS: second.caFile });
    expect(codesOf(other.findings)).toEqual(['D120']);
    expect(other.findings.find(({ code }) => code === 'D120')?.seen).toContain(new URL(second.issuer).host);
  });
});
