import { describe, expect, it } from 'vitest';
import { createReadExternalUrl } from '../../src/core/http/external-url.ts';
import { Refused } from '../../src/core/refused.ts';
import { createGateCors } from '../../src/gate/match/cors.ts';
import { chooseTreatment, createChooseRule } from '../../src/gate/match/rule-choice.ts';
import { readValidRules } from '../support/read-rules.ts';
import { words } from '../support/words.ts';

const app = 'https://app.example';
const ids = (list: string, members: object) => words(list).map((id) => ({ id, path: `/${id}/**`, ...members }));
const text = JSON.stringify({
  issuers: { staff: { issuer: 'https://idp.example/', audience: 'api' } },
  upstreams: { strip: 'http://127.0.0.1:1' },
  exchanges: { own: { issuer: 'staff', clientId: 'gate', clientSecretFile: '/a', audience: 'upstream' } },
  assertion: { issuer: 'gate', header: 'X-Signed', audience: 'upstream' },
  rules: [
    ...ids('token', {}),
    ...['open', 'deny', 'optional'].flatMap((access) => ids(access, { access })),
    ...ids('slash', { encodedSlash: 'allow', assertion: 'off' }),
    ...ids('strip', { upstream: 'strip', stripPrefix: '/strip', encodedSlash: 'allow' }),
    { id: 'any', hosts: ['any.example'], path: '/**', encodedSlash: 'allow' },
    ...ids('pre', { preflight: 'allow', methods: ['PUT'] }),
    { id: 'other', path: '/pre/**', methods: ['OPTIONS'] },
    ...ids('socket', { webSocketToken: 'protocol' }),
    ...ids('tenant', { path: '/tenant/{id}', when: 'path.id == token.tenant' }),
    ...ids('exchange', { exchange: 'own' }),
    ...ids('known', { when: 'token.tenant == "a"' }),
  ],
});
const rules = readValidRules(text);
const readExternalUrl = createReadExternalUrl({ trust: 'none' });
const choose = createChooseRule(rules, readExternalUrl);
const chooseWithCors = createChooseRule(rules, readExternalUrl, { cors: createGateCors({ origins: [app] }) });

type Headers = Readonly<Record<string, string>>;
const call = (path: string, headers: Headers = {}, method = 'GET') => ({
  ...{ method, url: `http://api.example${path}`, target: path },
  headers: new Headers({ host: 'api.example', ...headers }),
});

/** The rule and the treatment of a request, or the reason of its refusal. */
function decide(request: ReturnType<typeof call>, by = choose): string {
  const choice = by(request, undefined);
  return choice instanceof Refused ? choice.reason : `${choice.rule.id} ${chooseTreatment(choice)}`;
}

const planned = (origin = app): Headers => ({ origin, 'access-control-request-method': 'PUT' });
const socket = (protocol: string): Headers => ({
  ...{ upgrade: 'websocket', connection: 'upgrade', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' },
  'sec-websocket-protocol': protocol,
});

describe('rule and treatment', () => {
  it.each<[path: string, Headers, expected: string, method?: string]>([
    ['/token/1', {}, 'token judge'],
    ['/open/1', { authorization: 'x' }, 'open open'],
    ['/deny/1', {}, 'deny deny'],
    ['/exchange/1', {}, 'exchange deny', 'TRACE'],
    ['/optional/1', {}, 'optional deny', 'TRACE'],
    ['/open/1', {}, 'open open', 'TRACE'],
    ['/slash/1', {}, 'slash judge', 'TRACE'],
    ['/none', {}, 'no_rule'],
    ['/optional/1', {}, 'optional anonymous'],
    ['/optional/1', { authorization: 'x' }, 'optional judge'],
    ['/optional/1', { authorization: '' }, 'optional judge'],
    ['/optional/1', { dpop: 'x' }, 'optional judge'],
    ['/optional/1', { authorization: 'x', dpop: 'x' }, 'optional judge'],
    ['/token/../1', {}, 'ambiguous_path'],
    ['/token/a%2fb', {}, 'ambiguous_path'],
    ['/none/a%2fb', {}, 'ambiguous_path'],
    ['/slash/a%2fb', {}, 'slash judge'],
    ['/strip', {}, 'strip judge'],
    ['/strip/a%2fb', {}, 'strip judge'],
    ['/strip/%2fb', {}, 'ambiguous_path'],
    ['/%2fb', { host: 'any.example' }, 'any judge'],
    ['/pre/1', planned(), 'pre preflight', 'OPTIONS'],
    ['/pre/1', planned(), 'no_rule', 'GET'],
    ['/pre/1', {}, 'other judge', 'OPTIONS'],
    ['/pre/1', { origin: app }, 'other judge', 'OPTIONS'],
    ['/pre/1', { 'access-control-request-method': 'PUT' }, 'other judge', 'OPTIONS'],
    ['/pre/1', { ...planned(), 'content-length': '0' }, 'pre preflight', 'OPTIONS'],
    ['/pre/1', { ...planned(), 'content-length': '1' }, 'other judge', 'OPTIONS'],
    ['/pre/1', { ...planned(), 'transfer-encoding': 'chunked' }, 'other judge', 'OPTIONS'],
    ['/pre/1', {}, 'pre judge', 'PUT'],
    ['/token/1', planned(), 'token judge', 'OPTIONS'],
    ['/none', planned(), 'no_rule', 'OPTIONS'],
    ['/socket/1', socket('bearer, T'), 'socket judge'],
    ['/socket/1', socket('chat'), 'socket judge'],
    ['/socket/1', socket('bearer'), 'socket ambiguous'],
    ['/token/1', socket('bearer'), 'token judge'],
  ])('%s %j → %s %s', (path, headers, expected, method) => {
    expect(decide(call(path, headers, method))).toBe(expected);
  });

  it.each<[path: string, Headers, expected: string]>([
    ['/token/1', planned(), 'token preflight'],
    ['/token/1', planned('https://evil.example'), 'token judge'],
    ['/pre/1', planned('https://evil.example'), 'pre preflight'],
    ['/deny/1', planned(), 'deny deny'],
    ['/none', planned(), 'no_rule'],
    ['/open/1', planned(), 'open open'],
  ])('with CORS, a preflight of %s by %j → %s', (path, headers, expected) => {
    expect(decide(call(path, headers, 'OPTIONS'), chooseWithCors)).toBe(expected);
  });

  it('an invalid host → its refusal', () => expect(decide(call('/token/1', { host: 'a..b' }))).toBe('bad_host_header'));
});

describe('the request, as its rule reads it', () => {
  const view = (path: string, headers: Headers) => {
    const request = call(path, headers);
    const choice = choose(request, undefined);
    if (choice instanceof Refused) throw new Error(choice.reason);
    return { request, seen: choice.request };
  };

  it('the token of a subprotocol → Authorization, every other header unchanged', () => {
    const { request, seen } = view('/socket/1', socket('bearer, T'));
    for (const name of ['authorization', 'Authorization']) expect(seen.headers.get(name)).toBe('Bearer T');
    expect(seen.headers.get('upgrade')).toBe('websocket');
    expect([...(seen.headers.entries?.() ?? [])]).toEqual([...request.headers.entries()]);
    const { method, url, target } = request;
    expect({ method: seen.method, url: seen.url, target: seen.target }).toEqual({ method, url, target });
    expect(seen).not.toHaveProperty('conditionCall.path');
  });

  it.each([
    ['/socket/1', { ...socket('bearer, T'), authorization: 'Bearer own' }],
    ['/token/1', socket('bearer, T')],
    ['/known/1', {}],
  ])('%s %j → the request itself', (path, headers) => {
    const { request, seen } = view(path, headers);
    expect(seen).toBe(request);
  });

  it('a condition that reads the path → its target', () => {
    const { seen } = view('/tenant/a', {});
    expect(seen).toMatchObject({ method: 'GET', conditionCall: expect.anything() });
  });
});
