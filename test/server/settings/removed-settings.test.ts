import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { commandTable } from '../../../src/cli/commands/command-table.ts';
import { findUnknownFlag } from '../../../src/cli/commands/flags.ts';
import { removedSettings } from '../../../src/server/settings/removed-settings.ts';
import { readSettings } from '../../../src/server/settings/settings.ts';

const folder = mkdtempSync(join(tmpdir(), 'portcullis-removed-'));
afterAll(() => rmSync(folder, { recursive: true }));
const required = { IDP_DOMAIN: 'tenant.example.test', IDP_AUDIENCE: 'https://api.example.test/' };

/** Sets one name that was removed; returns the problems. */
type Write = (name: string) => ReturnType<typeof read>;
function read(environment: Readonly<Record<string, string>>, args: readonly string[] = []) {
  const result = readSettings({ args, environment: { ...required, ...environment } });
  return result.kind === 'problems' ? result.problems : result.misspellings;
}
function readFile(member: string) {
  const path = join(folder, 'settings.json');
  writeFileSync(path, JSON.stringify({ [member]: 'x' }));
  return read({}, ['--settings', path]);
}
const flagOf = (name: string): string => `--${name.toLowerCase().replaceAll('_', '-')}`;
const ways: Readonly<Record<string, Write>> = {
  variable: (name) => read({ [name]: 'x' }),
  'variable with the prefix': (name) => read({ [`PORTCULLIS_${name}`]: 'x' }),
  _FILE: (name) => read({ [`${name}_FILE`]: '/x' }),
  flag: (name) => read({}, [flagOf(name), 'x']),
  'flag with =': (name) => read({}, [`${flagOf(name)}=x`]),
  'member of a file': (name) => readFile(name),
  'member of a file in lower case': (name) => readFile(name.toLowerCase()),
};

describe.each(Object.keys(removedSettings))('%s, which this version does not have', (name) => {
  it.each(Object.entries(ways))('%s → one problem with what to do instead', (_way, write) => {
    const fix = expect.stringContaining(removedSettings[name] ?? '');
    expect(write(name)).toEqual([
      { name: expect.stringMatching(new RegExp(name.replaceAll('_', '[-_]'), 'i')), value: undefined, fix },
    ]);
  });

  it('flag → accepted by the check of unknown flags, so that the settings report it', () => {
    expect(findUnknownFlag([flagOf(name), 'x'], commandTable.serve)).toBeUndefined();
    expect(findUnknownFlag([flagOf(name), 'x'], { ...commandTable.serve, settings: 'none' })).toMatch(
      /^there is no flag/,
    );
  });
});

it('a variable that is empty → not set', () => expect(read({ SOCKET_MODE: '' })).toEqual([]));
