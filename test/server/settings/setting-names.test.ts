import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { commandTable } from '../../../src/cli/commands/command-table.ts';
import { findUnknownFlag } from '../../../src/cli/commands/flags.ts';
import { type Failure, failures } from '../../../src/core/failures.ts';
import { readGateSettings } from '../../../src/gate/gate-settings.ts';
import { removedSettings } from '../../../src/server/settings/removed-settings.ts';
import { warnOfSettings } from '../../../src/server/settings/running-settings.ts';
import { formatFix, labelSettings, nameHint, nameSettings } from '../../../src/server/settings/setting-names.ts';
import type { EffectiveSetting } from '../../../src/server/settings/setting-report.ts';
import { readSettings } from '../../../src/server/settings/settings.ts';
import { variants } from '../../../src/server/variants/variants.ts';
import { useFolder } from '../../support/folder.ts';
import { readBad, readValid } from '../../support/read-settings.ts';

const a = nameSettings({ variant: variants.a });
const b = nameSettings({ variant: variants.b });

describe('the fix of a refusal', () => {
  it('one about something that the operator sets → ends with its variable, as the variant names it', () => {
    const { fix } = failures.invalid_audience;
    expect(formatFix(failures.invalid_audience, a)).toBe(`${fix} Setting: IDP_AUDIENCE.`);
    expect(formatFix(failures.invalid_audience, b)).toBe(`${fix} Setting: IdpApiIdentifier.`);
    expect(formatFix(failures.bearer_not_accepted, b)).toMatch(/ Setting: DPOP_REQUIRED\.$/);
  });

  it('any other → unchanged', () => {
    const others = Object.values<Failure>(failures).filter(({ concept }) => concept === undefined);
    expect(others.length).toBeGreaterThan(30);
    expect(others.filter((failure) => formatFix(failure, a) !== failure.fix)).toEqual([]);
  });
});

describe('the hint of a log line', () => {
  it('begins with a concept → begins with its variable; the other facts stay', () => {
    const context = { expected: 'http://a/', hint: 'trustProxy with X-Forwarded-Proto' };
    expect(nameHint(context, a)).toEqual({ expected: 'http://a/', hint: 'TRUST_PROXY with X-Forwarded-Proto' });
  });

  it.each([
    undefined,
    { issuer: 'https://idp.example/' },
    { hint: 'htu' },
    { hint: 'trustProxy' },
    { hint: 'constructor with more' },
    { hint: 3 },
  ])('%j → unchanged', (context) => expect(nameHint(context, a)).toBe(context));
});

const setting = (name: string, source: EffectiveSetting['source'], value = 'x'): EffectiveSetting => ({
  name,
  value,
  source,
});

/** The lines that explain would advise, with these settings in force. */
function advise(variant: 'a' | 'b', ...effective: readonly EffectiveSetting[]) {
  const { issuer, audience } = labelSettings({ variant: variants[variant] }, effective);
  return {
    name: issuer.name,
    ofDomain: issuer.set('https://id.example/'),
    withPath: issuer.set('https://id.example/realms/main'),
    audience: audience.set('urn:api'),
  };
}

describe('the line that changes a setting', () => {
  it('the issuer is named by its domain → the domain, or ISSUER in its place', () => {
    expect(advise('a', setting('IDP_DOMAIN', 'environment'), setting('ISSUER', 'default', ''))).toEqual({
      name: 'IDP_DOMAIN',
      ofDomain: 'IDP_DOMAIN=id.example',
      withPath: 'ISSUER=https://id.example/realms/main, and remove IDP_DOMAIN',
      audience: 'IDP_AUDIENCE=urn:api',
    });
  });

  it('the issuer is named in full → ISSUER, and no word of the domain', () => {
    expect(advise('b', setting('IdpDomain', 'default', ''), setting('ISSUER', 'file'))).toEqual({
      name: 'ISSUER',
      ofDomain: 'ISSUER=https://id.example/',
      withPath: 'ISSUER=https://id.example/realms/main',
      audience: 'IdpApiIdentifier=urn:api',
    });
  });

  it('the value comes from a flag, which wins over variables → the flag', () => {
    const flags = [setting('IDP_DOMAIN', 'flag'), setting('ISSUER', 'default', ''), setting('IDP_AUDIENCE', 'flag')];
    expect(advise('a', ...flags)).toMatchObject({ ofDomain: '--domain=id.example', audience: '--audience=urn:api' });
  });
});

const path = join(useFolder(), 'settings.json');

/** Sets one name that was removed; returns the problems. */
type Write = (name: string) => ReturnType<typeof readBad>;
const readFile: Write = (member) => {
  writeFileSync(path, JSON.stringify({ [member]: 'x' }));
  return readBad({}, ['--settings', path]);
};
const flagOf = (name: string): string => `--${name.toLowerCase().replaceAll('_', '-')}`;
const ways: Readonly<Record<string, Write>> = {
  variable: (name) => readBad({ [name]: 'x' }),
  'variable with the prefix': (name) => readBad({ [`PORTCULLIS_${name}`]: 'x' }),
  _FILE: (name) => readBad({ [`${name}_FILE`]: '/x' }),
  flag: (name) => readBad({}, [flagOf(name), 'x']),
  'flag with =': (name) => readBad({}, [`${flagOf(name)}=x`]),
  'member of a file': (name) => readFile(name),
  'member of a file in lower case': (name) => readFile(name.toLowerCase()),
};

describe.each(Object.keys(removedSettings))('%s, which this version does not have', (name) => {
  it.each(Object.entries(ways))('%s → one problem with what to do instead', (_way, write) => {
    const fix = expect.stringContaining(removedSettings[name] ?? '');
    const written = expect.stringMatching(new RegExp(name.replaceAll('_', '[-_]'), 'i'));
    expect(write(name)).toEqual([{ name: written, fix }]);
  });

  it('flag → accepted by the check of unknown flags, so that the settings report it', () => {
    expect(findUnknownFlag([flagOf(name), 'x'], commandTable.serve)).toBeUndefined();
    const { settings: _, ...without } = commandTable.serve;
    expect(findUnknownFlag([flagOf(name), 'x'], without)).toMatch(/^there is no flag/);
  });
});

it('a variable that is empty → not set', () => expect(readValid({ SOCKET_MODE: '' }).misspellings).toEqual([]));

const policy = { ISSUER: 'https://id.example/', IDP_AUDIENCE: 'api' };

/** The warnings of a command: the event, and the setting or variable. */
function warnings(
  command: 'serve' | 'gate',
  environment: Readonly<Record<string, string>>,
  args: readonly string[] = [],
): readonly string[] {
  const sources = { args, environment: { ...(environment['RULES'] === undefined && policy), ...environment } };
  const result = command === 'gate' ? readGateSettings(sources) : readSettings(sources);
  if (result.kind === 'problems') throw new Error(JSON.stringify(result.problems));
  const lines: string[] = [];
  const write = (_level: 'warn', event: string, { setting, variable, fix }: Readonly<Record<string, string>>): void =>
    void lines.push(`${event} ${setting ?? variable}: ${fix}`);
  warnOfSettings(result, command, { write });
  return lines;
}

const unread = (setting: string, command: string, other: string): string =>
  `setting_unread ${setting}: portcullis ${command} does not read it. Remove it, or run portcullis ${other}.`;

const comma = (setting: string, list: string): string =>
  `audience_has_comma ${setting}: It is one audience, with its comma. For several, write "audience": ${list} of an issuer in the rules of a gate.`;

it.each<['serve' | 'gate', Readonly<Record<string, string>>, readonly string[], readonly string[]]>([
  ['gate', { CORS_ORIGINS: 'https://app.example' }, [], []],
  ['gate', {}, ['--docs', 'false'], [unread('DOCS', 'gate', 'serve')]],
  ['gate', {}, ['--audience', 'https://a/, https://a'], [comma('IDP_AUDIENCE', '["https://a/","https://a"]')]],
  ['serve', { IDP_AUDIENCE: 'a,b' }, [], [comma('IDP_AUDIENCE', '["a","b"]')]],
  ['serve', { VARIANT: 'b', IDP_AUDIENCE: '', IdpApiIdentifier: 'a,b' }, [], [comma('IdpApiIdentifier', '["a","b"]')]],
  [
    'gate',
    { DOCS: 'false', CUSTOM_CLAIM: 'c' },
    [],
    [unread('CUSTOM_CLAIM', 'gate', 'serve'), unread('DOCS', 'gate', 'serve')],
  ],
  ['gate', { RULES: 'rules.json', UPSTREAM: 'http://127.0.0.1:1', UPSTREAM_TIMEOUT: '5' }, [], []],
  ['gate', { SCOPE: 'read', CORS_ORIGINS: '' }, [], []],
  ['gate', { KEEP_ALIV: '10' }, [], ['setting_unknown KEEP_ALIV: It has no effect. Did you mean KEEP_ALIVE?']],
  ['serve', { CORS_ORIGINS: 'https://app.example', DOCS: 'false', UPSTREAM: '' }, [], []],
  [
    'serve',
    { IDP_DOMAIN: 'id.example', ISSUER: '', RULES: 'rules.json', SCOPE: 'read', IDP_AUDIENCE: 'a' },
    [],
    [unread('RULES', 'serve', 'gate'), unread('SCOPE', 'serve', 'gate')],
  ],
  ['serve', {}, ['--upstream', 'http://127.0.0.1:1'], [unread('UPSTREAM', 'serve', 'gate')]],
])('settings that a command does not read: %s, %j %j → %j', (command, environment, args, expected) =>
  expect(warnings(command, environment, args)).toEqual(expected),
);
