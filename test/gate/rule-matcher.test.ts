import { describe, expect, it } from 'vitest';
import { readOriginHost, readRequestPath } from '../../src/gate/match/request-target.ts';
import { createRuleMatcher } from '../../src/gate/match/rule-choice.ts';
import { readRuleHost, readRulePath } from '../../src/gate/match/rule-pattern.ts';

interface Pattern {
  readonly hosts?: readonly string[];
  readonly path: string;
  readonly methods?: readonly string[];
}

function match(rules: Readonly<Record<string, Pattern>>, order = Object.keys(rules)) {
  const matcher = createRuleMatcher<string>();
  const ties: (readonly [string, string])[] = [];
  for (const id of order) {
    const { hosts = [], path, methods = [] } = rules[id] ?? { path: '/' };
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

const rules = {
  all: { path: '/**' },
  orders: { path: '/orders/**' },
  'orders-exact': { path: '/orders' },
  'orders-item': { path: '/orders/*' },
  'orders-new': { path: '/orders/new' },
  'orders-item-lines': { path: '/orders/*/lines' },
  'orders-new-rest': { path: '/orders/new/**' },
  'orders-post': { path: '/orders', methods: ['POST'] },
  'orders-get': { path: '/orders', methods: ['GET'] },
  admin: { hosts: ['admin.example'], path: '/**' },
  'admin-port': { hosts: ['admin.example:8443'], path: '/**' },
  wild: { hosts: ['*.example'], path: '/wild/**' },
  'wild-longer': { hosts: ['*.eu.example'], path: '/**' },
  'wild-same': { hosts: ['*.eu.example'], path: '/wild/**' },
  v6: { hosts: ['[::1]'], path: '/**' },
} as const;

describe('the most specific rule wins', () => {
  const cases = [
    ['GET', `${api}/`, 'all'],
    ['GET', `${api}/other`, 'all'],
    ['PUT', `${api}/orders`, 'orders-exact'],
    ['PUT', `${api}/orders/`, 'orders-exact'],
    ['GET', `${api}/orders`, 'orders-get'],
    ['HEAD', `${api}/orders`, 'orders-get'],
    ['POST', `${api}/orders`, 'orders-post'],
    ['get', `${api}/orders`, 'orders-exact'],
    ['GET', `${api}/orders/1`, 'orders-item'],
    ['GET', `${api}/orders/new`, 'orders-new'],
    ['GET', `${api}/orders/1/lines`, 'orders-item-lines'],
    ['GET', `${api}/orders/new/lines`, 'orders-new-rest'],
    ['GET', `${api}/orders/1/other`, 'orders'],
    ['GET', `${api}/Orders`, 'all'],
    ['GET', 'https://admin.example/orders', 'admin'],
    ['GET', 'https://admin.example./orders', 'admin'],
    ['GET', 'https://admin.example:8443/orders', 'admin-port'],
    ['GET', 'https://admin.example:9000/orders', 'admin'],
    ['GET', 'https://x.example/wild', 'wild'],
    ['GET', 'https://x.example/orders', 'orders-get'],
    ['GET', 'https://x.eu.example/orders', 'wild-longer'],
    ['GET', 'https://x.eu.example/wild/1', 'wild-same'],
    ['GET', 'https://a.b.eu.example:1234/x', 'wild-longer'],
    ['GET', 'https://eu.example/x', 'all'],
    ['GET', 'https://example/wild', 'all'],
    ['GET', 'http://[::1]:8000/x', 'v6'],
  ] as const;

  it.each(cases)('%s %s → %s', (method, url, id) => {
    expect(match(rules).find(method, url)).toBe(id);
  });

  it('whatever the order in the file', () => {
    const { ties, find } = match(rules, Object.keys(rules).toReversed());
    expect(ties).toEqual([]);
    for (const [method, url, id] of cases) expect(find(method, url)).toBe(id);
  });
});

describe('no match', () => {
  it.each([
    ['another method', { a: { path: '/a', methods: ['POST'] } }, 'GET', '/a'],
    ['HEAD, where only POST is named', { a: { path: '/a', methods: ['POST'] } }, 'HEAD', '/a'],
    ['a longer path', { a: { path: '/a' } }, 'GET', '/a/b'],
    ['a shorter path', { a: { path: '/a/*' } }, 'GET', '/a'],
    ['a prefix of a name', { a: { path: '/a/**' } }, 'GET', '/ab'],
    ['a literal asterisk for any segment', { a: { path: '/%2A' } }, 'GET', '/x'],
  ] as const)('%s', (_claim, only, method, path) => {
    expect(match(only).find(method, api + path)).toBeUndefined();
  });

  it('** is any rest, also none', () => {
    const { find } = match({ a: { path: '/a/**' } });
    for (const path of ['/a', '/a/', '/a/b', '/a/b/c/d']) expect(find('GET', api + path)).toBe('a');
  });

  it('a more specific path of another method leaves the request to the next rule', () => {
    const { find } = match({ post: { path: '/a/b', methods: ['POST'] }, any: { path: '/a/*' } });
    expect(find('POST', `${api}/a/b`)).toBe('post');
    expect(find('GET', `${api}/a/b`)).toBe('any');
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
