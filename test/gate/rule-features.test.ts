import { describe, expect, it } from 'vitest';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { createGate } from '../../src/gate/gate.ts';
import { createTestIssuer } from '../../src/testing/index.ts';
import { problemsOf, readValidRules } from '../support/read-rules.ts';

const issuer = createTestIssuer();
const issuers = { staff: { issuer: 'https://id.example/', audience: 'orders' } };

interface Sample {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Decides on a request with the rules of a file; tokens are from the test issuer. */
async function decide(rules: readonly object[], url: string, { method = 'GET', headers = {} }: Sample = {}) {
  const gate = createGate({
    rules: readValidRules({ issuers, rules }),
    openServer: () => createResourceServer({ issuers: [issuer], audience: issuer.audience }),
  });
  const { host } = new URL(url);
  const request = { method, url, target: url.slice(url.indexOf('/', 8)), headers: new Headers({ host, ...headers }) };
  const decision = await gate.decide(request, { encrypted: true });
  const error = decision.kind === 'refused' ? decision.error : undefined;
  return { decision, rule: decision.rule?.id, error: error as { reason: string; context?: object } | undefined };
}

describe('named segments and labels', () => {
  const rules = [
    { id: 'exact', hosts: ['a.api.example'], path: '/x/**', access: 'open' },
    { id: 'label', hosts: ['{tenant}.api.example'], path: '/x/**', access: 'open' },
    { id: 'inner', hosts: ['{tenant}.eu.example'], path: '/x/**', access: 'open' },
    { id: 'wildcard', hosts: ['*.example'], path: '/x/**', access: 'open' },
    { id: 'literal', path: '/orders/all', access: 'open' },
    { id: 'segment', path: '/orders/{id}', access: 'open' },
  ];
  it.each([
    ['https://a.api.example/x', 'exact'],
    ['https://b.api.example/x', 'label'],
    ['https://b.API.example/x', 'label'],
    ['https://c.b.api.example/x', 'wildcard'],
    ['https://b.eu.example/x', 'inner'],
    ['https://b.us.example/x', 'wildcard'],
    ['https://other.test/orders/all', 'literal'],
    ['https://other.test/orders/17', 'segment'],
    ['https://other.test/orders/17/lines', undefined],
  ])('%s → %s', async (url, id) => {
    expect((await decide(rules, url)).rule).toBe(id);
  });

  it.each([
    [{ path: '/{a}/{a}' }, '{a} is in the path twice.'],
    [{ path: '/a{b}' }, 'A {name} is one complete segment'],
    [{ path: '/{1a}' }, 'A {name} is one complete segment'],
    [{ path: '/', hosts: ['{a}.{a}.example'] }, 'Item 1 of "hosts" is not valid.'],
    [{ path: '/', hosts: ['a.{tld}'] }, 'Item 1 of "hosts" is not valid.'],
    [{ path: '/', hosts: ['*.{a}.example'] }, 'Item 1 of "hosts" is not valid.'],
    [{ path: '/', hosts: ['{a}.example:8443'] }, 'Item 1 of "hosts" is not valid.'],
    [{ path: '/{a}', hosts: ['{a}.example'] }, '{a} is in the path and in a host.'],
    [{ path: '/', claims: [{ claim: 't', equals: 'x' }] }, '"claims" was removed. Write "when", as in "token.tenant'],
  ])('%j → %s', (rule, message) => {
    const problems = problemsOf({ issuers, rules: [{ id: 'a', access: 'open', ...rule }] });
    expect(problems).toContainEqual(expect.stringContaining(message));
  });
});

describe('upstreams and prefixes', () => {
  const upstreams = { orders: 'http://10.0.0.5:3000' };
  it.each<[object, object, string]>([
    [{ upstream: 'shop' }, { upstreams }, 'There is no upstream "shop". Write any of: orders.'],
    [{ upstream: 'shop' }, {}, 'There is no upstream "shop". Add "upstreams".'],
    [{ upstream: 'orders', access: 'deny' }, { upstreams }, 'A rule with "access": "deny" has no upstream.'],
    [{}, { upstreams: { default: 'http://a' } }, '"default" is reserved for UPSTREAM.'],
    [{}, { upstreams: { orders: 'http://a/path' } }, 'The upstream "orders" cannot be used: '],
    [{}, { upstreams: { orders: 'http://u:p@a' } }, 'The upstream "orders" cannot be used: '],
    [{}, { upstreams: { a: { url: 'http://a/path' } } }, 'The upstream "a" cannot be used: '],
    [{}, { upstreams: { a: { url: 'http://a', caFile: 'a' } } }, '"caFile" is for https.'],
    [{}, { upstreams: { a: { url: 'unix:/a', serverName: 'a' } } }, '"serverName" is for https.'],
    [{}, { upstreams: { a: { url: 'https://a', certFile: 'a' } } }, '"certFile" and "keyFile" belong together.'],
    [{}, { upstreams: { a: { url: 'https://a', keyFile: 'a' } } }, '"certFile" and "keyFile" belong together.'],
    [{}, { upstreams: { a: { url: 'https://a', timeout: 0 } } }, '"timeout" is not valid. Write seconds, over 0'],
    [{}, { upstreams: { a: { url: 'https://a', certfile: 'a' } } }, '"a" is not valid. Write an address ('],
    [{}, { upstreams: { a: { caFile: 'a' } } }, '"a" is not valid. Write an address ('],
    [{}, { upstreams: { 'a b': 'http://a' } }, '"a b" is not valid. Write a name'],
    [{ path: '/a/**', stripPrefix: '/b' }, {}, '"/b" is not how "/a/**" begins.'],
    [{ path: '/*/**', stripPrefix: '/a' }, {}, '"/a" is not how "/*/**" begins.'],
    [{ path: '/a/**', stripPrefix: '/a/' }, {}, '"stripPrefix" is not valid.'],
    [{ path: '/a', stripPrefix: '/a/b' }, {}, '"/a/b" is not how "/a" begins.'],
    [{ cors: { origins: ['*'], credentials: true } }, {}, '"cors" is not valid.'],
    [{ cors: { origins: ['*', 'https://a'] } }, {}, '"cors" is not valid.'],
    [{ cors: { origins: ['https://a/path'] } }, {}, 'Item 1 of "origins" is not valid.'],
  ])('%j with %j → %s', (rule, members, message) => {
    const rules = [{ id: 'a', path: '/x', access: 'open', ...rule }];
    const problems = problemsOf({ issuers, ...members, rules });
    expect(problems).toContainEqual(expect.stringContaining(message));
  });

  it('a remainder that begins with an encoded slash → ambiguous_path', async () => {
    const rules = [{ id: 'a', path: '/a/**', stripPrefix: '/a', access: 'open', encodedSlash: 'allow' }];
    expect((await decide(rules, 'https://x.test/a/b%2Fc')).rule).toBe('a');
    expect((await decide(rules, 'https://x.test/a/%2Fc')).error).toMatchObject({ reason: 'ambiguous_path' });
  });
});

describe('refused targets', () => {
  const rules = [
    { id: 'a', path: '/a', access: 'open' },
    { id: 'b', path: '/b/**', access: 'deny' },
  ];
  it.each([
    ['https://x.test/c?secret=1', 'no_rule', '/c'],
    ['https://x.test/b/c?secret=1', 'denied_by_rule', '/b/c'],
    ['https://x.test/a/../b', 'ambiguous_path', '/a/../b'],
    [`https://x.test/${'c'.repeat(300)}`, 'no_rule', `/${'c'.repeat(254)}…`],
    ['https://x.test/reset/eyJhbGciOiJFUzI1NiJ9.e30.c2ln', 'no_rule', '/reset/***'],
  ])('%s → %s with host and path', async (url, reason, path) => {
    expect((await decide(rules, url)).error).toMatchObject({ reason, context: { host: 'x.test', path } });
  });
});

describe('CORS of a rule', () => {
  const cors = { origins: ['https://app.example'], credentials: true };
  const rules = [
    { id: 'read', path: '/a', methods: ['GET'], issuers: ['staff'], cors },
    { id: 'closed', path: '/b', access: 'deny', cors },
    { id: 'plain', path: '/c', issuers: ['staff'] },
  ];
  const preflight = (origin = 'https://app.example', method = 'GET') => ({
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': method,
      'access-control-request-headers': 'authorization,dpop',
    },
  });

  it('preflight of a listed origin → admitted with its headers', async () => {
    const { decision } = await decide(rules, 'https://x.test/a', preflight());
    expect(decision).toMatchObject({ kind: 'admitted', isCorsPreflight: true });
    expect(decision.cors).toEqual([
      ...['vary', 'Origin'],
      ...['access-control-expose-headers', 'WWW-Authenticate, DPoP-Nonce, Retry-After, X-Request-Id'],
      ...['access-control-allow-origin', 'https://app.example', 'access-control-allow-credentials', 'true'],
      ...['access-control-allow-methods', 'GET', 'access-control-allow-headers', 'authorization,dpop'],
      ...['access-control-max-age', '600'],
    ]);
  });

  it.each([
    ['GET, PUT', 'a,b', ['access-control-allow-headers', 'a,b']],
    ['GET PUT', 'a, b', ['access-control-allow-headers', 'a, b']],
    ['GET', 'a b', ['access-control-allow-methods', 'GET']],
    ['GET', 'a,,b', ['access-control-allow-methods', 'GET']],
  ])('preflight of the method %j and the headers %j → only tokens in the response', async (method, names, expected) => {
    const { headers } = preflight(undefined, method);
    const request = { method: 'OPTIONS', headers: { ...headers, 'access-control-request-headers': names } };
    const { decision } = await decide([{ ...rules[2], cors }], 'https://x.test/c', request);
    expect(decision.cors?.slice(8)).toEqual([...expected, 'access-control-max-age', '600']);
  });

  it.each([
    ['another origin', '/a', preflight('https://evil.example'), 'no_rule', false],
    ['a denied rule', '/b', preflight(), 'denied_by_rule', true],
    ['a rule without CORS', '/c', preflight(), 'missing_credentials', false],
  ])('preflight of %s → refused', async (_what, path, sample, reason, hasOrigin) => {
    const { decision, error } = await decide(rules, `https://x.test${path}`, sample);
    expect(error).toMatchObject({ reason });
    expect(decision.cors.includes('access-control-allow-origin')).toBe(hasOrigin);
  });

  it('a refusal → with the origin, so that a script can read it', async () => {
    const { decision } = await decide(rules, 'https://x.test/a', { headers: { origin: 'https://app.example' } });
    expect(decision).toMatchObject({ kind: 'refused', refusal: { status: 401 } });
    expect(decision.cors).toContain('access-control-allow-origin');
    const other = await decide(rules, 'https://x.test/a', { headers: { origin: 'https://evil.example' } });
    expect(other.decision.cors).toEqual(['vary', 'Origin']);
  });
});
