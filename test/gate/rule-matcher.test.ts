import { describe, expect, it } from 'vitest';
import { readOriginHost, readRequestPath } from '../../src/gate/match/request-target.ts';
import { createRuleMatcher } from '../../src/gate/match/rule-choice.ts';
import { readRuleHost, readRulePath } from '../../src/gate/match/rule-pattern.ts';

interface Pattern {
  readonly hosts?: readonly string[];
  readonly path: string;
  readonly methods?: readonly string[];
}

function match(rules: Readonly<Record<string, Pattern>>) {
  const matcher = createRuleMatcher<string>();
  const ties: (readonly [string, string])[] = [];
  for (const [id, { hosts = [], path, methods = [] }] of Object.entries(rules)) {
    const pattern = readRulePath(path);
    if (typeof pattern === 'string') throw new Error(pattern);
    const rival = matcher.add(
      { ...pattern, hosts: hosts.map((host) => readRuleHost(host)?.pattern ?? ''), methods },
      id,
    );
    if (rival !== undefined) ties.push([rival, id]);
  }
  return {
    ties,
    find: (method: string, url: string) => {
      const [, origin = '', target = ''] = /^(https?:\/\/[^/]+)(.*)$/.exec(url) ?? [];
      return matcher.find(readOriginHost(origin), readRequestPath(target)?.segments ?? [], method);
    },
  };
}

const api = 'https://api.example';

// Which of many rules wins: test/differential/rule-ranking.test.ts.
describe('one of several rules', () => {
  const rules = {
    all: { path: '/**' },
    orders: { path: '/orders', methods: ['GET'] },
    asterisk: { path: '/%2A' },
    admin: { hosts: ['admin.example'], path: '/**' },
    v6: { hosts: ['[::1]'], path: '/**' },
  } as const;
  it.each([
    ['GET', `${api}/orders/`, 'orders'],
    ['HEAD', `${api}/orders`, 'orders'],
    ['get', `${api}/orders`, 'all'],
    ['GET', `${api}/Orders`, 'all'],
    ['GET', `${api}/x`, 'all'],
    ['GET', 'https://admin.example./orders', 'admin'],
    ['GET', 'https://admin.example:9000/orders', 'admin'],
    ['GET', 'http://[::1]:8000/x', 'v6'],
  ] as const)('%s %s → %s', (method, url, id) => {
    expect(match(rules).find(method, url)).toBe(id);
  });

  it('no match → none', () => {
    expect(match({ a: { path: '/a/**' } }).find('GET', `${api}/ab`)).toBeUndefined();
  });
});

describe('rules that could tie', () => {
  it.each([
    ['the same path', { a: { path: '/a/*' }, b: { path: '/a/*' } }],
    ['the same path but for a slash at the end', { a: { path: '/a' }, b: { path: '/a/' } }],
    ['the same path in other escapes', { a: { path: '/@me' }, b: { path: '/%40me' } }],
    ['a common method', { a: { path: '/a', methods: ['GET', 'POST'] }, b: { path: '/a', methods: ['PUT', 'POST'] } }],
    ['HEAD, which GET covers', { a: { path: '/a', methods: ['GET'] }, b: { path: '/a', methods: ['HEAD'] } }],
    ['a default port', { a: { hosts: ['x'], path: '/a' }, b: { hosts: ['x:443'], path: '/a' } }],
    ['spellings of one host', { a: { hosts: ['X.'], path: '/a' }, b: { hosts: ['x:80'], path: '/a' } }],
    ['a host in common', { a: { hosts: ['x', 'y'], path: '/a' }, b: { hosts: ['y', 'z'], path: '/a' } }],
  ])('%s', (_claim, both) => {
    expect(match(both).ties).toEqual([['a', 'b']]);
  });
});
