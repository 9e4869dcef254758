import { describe, expect, it } from 'vitest';
import { findRuleWarnings } from '../../src/gate/review/rule-warnings.ts';
import { readRules } from '../../src/gate/rules/rules-reader.ts';
import type { RuleEntry } from '../../src/gate/rules/schema/rules-schema.ts';

type Entry = Partial<RuleEntry> & { readonly path: string };

const at = (path: string, ...hosts: string[]): Entry => ({ path, hosts });

/** The rules that cannot be reached, with the reason. */
function unreachable(entries: readonly Entry[]): readonly string[] {
  const rules = entries.map((entry, index) => ({ id: `r${index}`, access: 'open', ...entry }));
  const file = { name: 'rules.json', text: JSON.stringify({ rules }) };
  const read = readRules(file);
  if (read.kind === 'problems') throw new Error(JSON.stringify(read.problems));
  const found = findRuleWarnings(file, read.rules).filter(({ kind }) => kind === 'unreachable');
  return found.map(({ seen }) => seen.replace('no request can reach the rule ', ''));
}

describe('rules that no request can reach', () => {
  const hosts = ['a', 'b', 'c', 'd', 'e'].map((name) => `${name}.example`);
  const shadow = (most: number): readonly Entry[] => [
    at('/', ...hosts.slice(0, most).map((host) => `*.${host}`)),
    ...hosts.slice(0, most).map((host) => at('/', `{name}.${host}`)),
  ];
  it.each<[string, readonly Entry[], string]>([
    ['everything below a path', [{ path: '/a/**' }, { path: '/a' }, { path: '/a/*/**' }], '"r1" and "r2"'],
    [
      'each length',
      [{ path: '/a/**' }, { path: '/a' }, { path: '/a/*' }, { path: '/a/*/*/**' }],
      '"r1", "r2" and "r3"',
    ],
    ['all of its host', [at('/**', 'a.example'), at('/', 'a.example'), at('/*/**', 'a.example')], '"r1" and "r2"'],
    ['all of its hosts', shadow(5), '"r1", "r2", "r3" and 2 more'],
  ])('others take %s → their names', (_, entries, winners) =>
    expect(unreachable(entries)).toEqual([`"r0": the rules ${winners} are more specific and take all of its requests`]),
  );

  it('one other takes all → its name', () =>
    expect(unreachable(shadow(1))).toEqual(['"r0": the rule "r1" is more specific and takes all of its requests']));

  it('an encoded slash that is not allowed → the gate refuses its path', () =>
    expect(unreachable([{ path: '/packages/a%2Fb' }])).toEqual(['"r0": the gate refuses its path']));
});

describe('rules that look as if they were shadowed and are not', () => {
  it.each<[string, readonly Entry[]]>([
    ['a literal beside a *', [{ path: '/a/*' }, { path: '/a/b' }]],
    ['a rest beside one that is deeper', [{ path: '/**' }, { path: '/a/**' }, { path: '/*/b' }]],
    ['everything but the path itself is taken', [{ path: '/a/**' }, { path: '/a/*/**' }]],
    ['everything but longer paths is taken', [{ path: '/a/**' }, { path: '/a' }, { path: '/a/*' }, { path: '/a/*/*' }]],
    [
      'other rules take the usual methods',
      [{ path: '/a' }, { path: '/a', methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] }],
    ],
    ['HEAD, which GET covers elsewhere', [{ path: '/a', methods: ['HEAD'] }, { path: '/a' }]],
    ['a wildcard beside an exact host', [at('/a', '*.example'), at('/a', 'a.example')]],
    ['hosts with a port', [at('/a', 'a.example:443'), at('/a', 'a.example:8443')]],
    ['an encoded slash that is allowed', [{ path: '/packages/a%2Fb', encodedSlash: 'allow' }]],
    ['a rule with our sample names', [{ path: '/sample0/*' }, { path: '/sample0/sample1' }, { path: '/*/**' }]],
    ['the root', [{ path: '/' }, { path: '/**' }]],
    ['a slash at the end', [{ path: '/a/' }]],
    ['an address in brackets', [{ path: '/a', hosts: ['[::1]:8443'] }]],
    ['hosts in unusual spellings', [{ path: '/a', hosts: ['[2001:db8:0::1]', 'BÜCHER.example.:443', '*.Example'] }]],
  ])('%s', (_, entries) => expect(unreachable(entries)).toEqual([]));
});
