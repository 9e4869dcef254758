import { describe, expect, it } from 'vitest';
import { createRuleSamples, describeUnreachable, findUnreachable } from '../../src/gate/review/rule-warnings.ts';
import { compileRules } from '../../src/gate/rules/rules-compilation.ts';
import type { RuleEntry } from '../../src/gate/rules/schema/rules-schema.ts';

type Entry = Partial<RuleEntry> & { readonly path: string };

const at = (path: string, ...hosts: string[]): Entry => ({ path, hosts });

/** The indexes of the rules that cannot be reached. */
function unreachable(...entries: readonly Entry[]): readonly string[] {
  const document = { rules: entries.map((entry, index) => ({ id: `r${index}`, access: 'open' as const, ...entry })) };
  const rules = compileRules([{ document, locate: () => ({ line: 1, column: 1 }) }], (_, message) => {
    throw new Error(message);
  });
  if (rules === undefined) throw new Error('no rules');
  return findUnreachable(document.rules, createRuleSamples(document.rules, rules)).map(({ id }) => id);
}

describe('rules that no request can reach', () => {
  it.each<[string, readonly Entry[], readonly string[]]>([
    ['everything below a path is taken', [{ path: '/a/**' }, { path: '/a' }, { path: '/a/*/**' }], ['r0']],
    ['every length is taken', [{ path: '/a/**' }, { path: '/a' }, { path: '/a/*' }, { path: '/a/*/*/**' }], ['r0']],
    ['an encoded slash that is not allowed', [{ path: '/packages/a%2Fb' }], ['r0']],
    ['rules of its host take all', [at('/**', 'a.example'), at('/', 'a.example'), at('/*/**', 'a.example')], ['r0']],
  ])('%s', (_, entries, expected) => {
    expect(unreachable(...entries)).toEqual(expected);
  });
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
  ])('%s', (_, entries) => {
    expect(unreachable(...entries)).toEqual([]);
  });
});

describe('winners of its requests', () => {
  it.each([
    [[], 'the gate refuses its path'],
    [['a'], 'the rule "a" is more specific and takes all of its requests'],
    [['a', 'b', 'c'], 'the rules "a", "b" and "c" are more specific and take all of its requests'],
    [['a', 'b', 'c', 'd', 'e'], 'the rules "a", "b", "c" and 2 more are more specific and take all of its requests'],
  ])('%j → %s', (winners, why) => {
    expect(describeUnreachable({ id: 'x', index: 0, winners })).toBe(`no request can reach the rule "x": ${why}`);
  });
});
