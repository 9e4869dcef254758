import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { commandTable } from '../../../src/cli/commands/command-table.ts';
import { findUnknownFlag } from '../../../src/cli/commands/flags.ts';
import { removedSettings } from '../../../src/server/settings/removed-settings.ts';
import { useFolder } from '../../support/folder.ts';
import { readBad, readValid } from '../../support/read-settings.ts';

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
