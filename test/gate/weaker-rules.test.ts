import { describe, expect, it } from 'vitest';
import { createRuleSamples, findWeaker } from '../../src/gate/review/rule-warnings.ts';
import { compileRules } from '../../src/gate/rules/rules-compilation.ts';
import type { RuleEntry } from '../../src/gate/rules/schema/rules-schema.ts';

type Entry = Partial<RuleEntry> & { readonly path: string };

/** What is found, as `rule member other`. */
function weaker(...entries: readonly Entry[]): readonly string[] {
  const document = {
    issuers: { staff: { issuer: 'https://id.example/', audience: 'orders' } },
    rules: entries.map((entry, index) => ({ id: `r${index}`, ...entry })),
  };
  const rules = compileRules([{ document, locate: () => ({ line: 1, column: 1 }) }], (_, message) => {
    throw new Error(message);
  });
  if (rules === undefined) throw new Error('no rules');
  const found = findWeaker(document.rules, rules, createRuleSamples(document.rules, rules));
  return found.map(({ id, member, other }) => `${id} ${member} ${other}`);
}

const get = ['GET'];
const hosts = ['api.example'];

describe('requests that a rule leaves to a weaker rule', () => {
  it.each<[string, readonly Entry[], readonly string[]]>([
    [
      'other methods to an open rule',
      [
        { path: '/admin/**', methods: get },
        { path: '/**', access: 'open' },
      ],
      ['r0 methods r1'],
    ],
    [
      'other methods of the same path to an open rule',
      [
        { path: '/a', methods: ['POST', 'PUT'] },
        { path: '/a', access: 'open' },
      ],
      ['r0 methods r1'],
    ],
    [
      'other methods to an optional rule',
      [
        { path: '/admin/**', methods: get },
        { path: '/**', access: 'optional' },
      ],
      ['r0 methods r1'],
    ],
    [
      'other methods to a rule in report mode',
      [
        { path: '/admin/**', methods: get },
        { path: '/**', mode: 'report' },
      ],
      ['r0 methods r1'],
    ],
    [
      'other methods to a rule without scopes',
      [{ path: '/admin/**', methods: get, scopes: ['admin'] }, { path: '/**' }],
      ['r0 methods r1'],
    ],
    [
      'other methods to a rule without proofs',
      [{ path: '/admin/**', methods: get, dpop: 'required' }, { path: '/**' }],
      ['r0 methods r1'],
    ],
    [
      'other methods than the denied ones to a rule that admits',
      [{ path: '/admin/**', methods: get, access: 'deny' }, { path: '/**' }],
      ['r0 methods r1'],
    ],
    [
      'other hosts to an open rule',
      [
        { path: '/**', hosts, access: 'deny' },
        { path: '/**', access: 'open' },
      ],
      ['r0 hosts r1'],
    ],
    [
      'the name itself, which a wildcard does not cover',
      [
        { path: '/**', hosts: ['*.example'] },
        { path: '/**', access: 'open' },
      ],
      ['r0 hosts r1'],
    ],
    [
      'both',
      [
        { path: '/admin', methods: get, hosts },
        { path: '/*', access: 'open' },
      ],
      ['r0 methods r1', 'r0 hosts r1'],
    ],
    [
      'to two rules, at two depths',
      [
        { path: '/a/**', methods: get },
        { path: '/a', access: 'open' },
        { path: '/*/*/**', access: 'open' },
        { path: '/a', methods: get },
      ],
      ['r0 methods r2', 'r3 methods r1'],
    ],
  ])('%s', (_claim, entries, expected) => {
    expect(weaker(...entries)).toEqual(expected);
  });
});

describe('nothing is found', () => {
  it.each<[string, readonly Entry[]]>([
    ['no rule for the others', [{ path: '/admin/**', methods: get, hosts }]],
    [
      'a rule that requires as much',
      [
        { path: '/a/**', methods: get, scopes: ['a'] },
        { path: '/a/**', scopes: ['b'] },
      ],
    ],
    [
      'a rule that denies the others',
      [
        { path: '/a/**', methods: get },
        { path: '/a/**', access: 'deny' },
      ],
    ],
    [
      'an open rule that names methods',
      [
        { path: '/a', methods: ['PUT'] },
        { path: '/a', methods: get, access: 'open' },
      ],
    ],
    [
      'an open rule that names hosts',
      [
        { path: '/a', hosts },
        { path: '/a', hosts: ['www.example'], access: 'open' },
      ],
    ],
    [
      'an open rule with methods, before a stronger rule',
      [{ path: '/a', methods: get, access: 'open' }, { path: '/a' }],
    ],
    ['a rule without methods and hosts', [{ path: '/admin/**' }, { path: '/**', access: 'open' }]],
    [
      'a more specific open rule',
      [
        { path: '/a/**', methods: get },
        { path: '/a/**', access: 'deny' },
        { path: '/a/b', access: 'open' },
      ],
    ],
  ])('%s', (_claim, entries) => {
    expect(weaker(...entries)).toEqual([]);
  });
});
