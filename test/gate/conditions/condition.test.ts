import { Buffer } from 'node:buffer';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createReadClientAddress } from '../../../src/core/http/external-url.ts';
import type { Connection, ResourceRequest } from '../../../src/core/http/request.ts';
import { parseJsonObject } from '../../../src/core/jose/json.ts';
import { createResourceServer } from '../../../src/core/resource-server/resource-server.ts';
import { createDisguise, showComparison } from '../../../src/core/shown-comparison.ts';
import type { PolicyFacts } from '../../../src/core/token/token-policy.ts';
import { compileCondition } from '../../../src/gate/conditions/condition.ts';
import { createGate } from '../../../src/gate/gate.ts';
import { ConditionCall } from '../../../src/gate/match/condition-call.ts';
import { createTestIssuer } from '../../../src/testing/index.ts';
import { problemsOf, readValidRules } from '../../support/read-rules.ts';

const names = new Set(['tenant']);
const compile = (text: string) => compileCondition(text, { names, headers: ['X-Auth-Subject'] });

interface Facts {
  readonly claims?: object;
  readonly headers?: Headers;
  readonly bound?: Readonly<Record<string, string>>;
  readonly at?: string;
  readonly connection?: Connection;
}

/** Claims as the parser of tokens reads them. */
function parseClaims(claims: object): PolicyFacts['token']['claims'] {
  const parsed = parseJsonObject(Buffer.from(JSON.stringify(claims)));
  if (parsed === undefined) throw new Error('the claims are not valid');
  return parsed as PolicyFacts['token']['claims'];
}

function factsOf({
  claims = {},
  headers = new Headers(),
  bound = {},
  at = '2027-06-07T10:00:00Z',
  connection,
}: Facts = {}): PolicyFacts {
  const request: ResourceRequest = { method: 'GET', url: 'https://api.example:8443/t/a%20b/x?y=1', headers };
  const target = {
    ...{ host: 'api.example:8443', segments: ['t', 'a b', 'x\0y'], bound: new Map(Object.entries(bound)) },
    ...{ peer: connection, readClientAddress: createReadClientAddress('none') },
  };
  const token = { claims: parseClaims(claims), scopes: new Set<string>() } as unknown as PolicyFacts['token']; // not read
  return { token, now: Date.parse(at) / 1000, conditionCall: new ConditionCall(request, target) };
}

const evaluate = (text: string, facts?: Facts): boolean => compile(text).check.passes(factsOf(facts));

describe('values', () => {
  const claims = {
    ...{ level: 3, ratio: 2.5, huge: 1e20, name: 'a', nothing: null, list: [1, 'a', null], deep: { a: { b: 'c' } } },
    ...{ until: 1812362401, 'https://api.example/team': 'x', empty: '', admin: true, text: '7' },
  };
  it.each<readonly [string, boolean]>([
    ['token.level == 3', true],
    ['token.level == 3.0', true],
    ['token.level + 1 == 4', true],
    ['token.level / 2 == 1', true],
    ['token.ratio == 2.5 && token.ratio > 2', true],
    ['type(token.level) == int && type(token.ratio) == double', true],
    ['token.huge == "100000000000000000000"', true],
    ['token.huge > 1', false],
    ['token.name == "a"', true],
    ['token.nothing == null', true],
    ['has(token.nothing)', true],
    ['"nothing" in token', true],
    ['has(token.missing)', false],
    ['"missing" in token', false],
    ['has(token.deep.a.b) && !has(token.deep.x)', true],
    ['has(token.x.y)', false],
    ['!has(token.x.y)', false],
    ['"a" in token.list && null in token.list && 1 in token.list', true],
    ['token["https://api.example/team"] == "x"', true],
    ['token.deep["a"].b == "c"', true],
    ['token.missing == 1 || token.level == 3', true],
    ['token.level == 3 || token.missing == 1', true],
    ['token.missing == 1 && token.level == 4', false],
    ['!(token.missing == 1 && token.level == 4)', true],
    ['token.missing != 1', false],
    ['token.admin', true],
    ['token.name', false],
    ['token.level', false],
    ['token.admin ? token.level == 3 : false', true],
    ['now < timestamp(token.until)', true],
    ['now >= timestamp(token.until) - duration("1s") && now - timestamp(0) > duration("1h")', true],
    ['timestamp(token.until) == timestamp("2027-06-07T10:00:01Z")', true],
    ['int(token.text) == 7 && double(token.text) == 7.0', true],
    ['int(token.empty) == 0', false],
    ['double(token.name) < 5.0 || !(double(token.name) > 5.0)', false],
    ['size(token.list) == 3 && token.list.size() == 3', true],
    ['token.list.filter(x, x == 1).size() == 1', true],
    ['token.list.map(x, x)[1] == "a"', true],
    ['[1, 2].all(x, x < token.level)', true],
    ['[[1], [2]].exists(x, x.exists(y, y == 2))', true],
    ['{"a": ["x"]}[token.name] == ["x"]', true],
    ['now.getHours() == 10 && now.getMonth() == 5 && now.getDate() == 7', true],
    ['now.getHours("Europe/Berlin") == 12 && now.getHours("-02:30") == 7 && now.getMinutes("+02:30") == 30', true],
    ['now.getDayOfWeek() == 1 && now.getDayOfYear() == 157 && now.getFullYear() == 2027', true],
    ['now.getDayOfMonth() == 6 && now.getMinutes() == 0 && now.getSeconds() == 0 && now.getMilliseconds() == 0', true],
    ['timestamp(99999999999999) > now', false],
  ])('%s → %s', (text, expected) => {
    expect(evaluate(text, { claims })).toBe(expected);
  });
});

describe('the request', () => {
  const headers = new Headers({
    'X-App': '4.2',
    'sec-websocket-protocol': 'chat, bearer, x.y.z',
    authorization: 'Bearer x',
    cookie: 'a=b',
    dpop: 'x',
  });
  const more =
    'X-List: a|x-list: b|connection: close, X-Named|x-named: 1|x_debug: 1|X.Env: c|x_auth_subject: admin|x-forwarded-for: ::1';
  for (const line of more.split('|')) headers.append(...(line.split(': ') as [string, string])); // each has a value
  it.each<readonly [string, boolean]>([
    ['request.method == "GET"', true],
    ['request.host == "api.example:8443"', true],
    ['request.path == "/t/a b/x/y"', true],
    ['request.client_ip == "192.0.2.7"', true],
    ['request.headers["x-app"].startsWith("4.") && "x-app" in request.headers', true],
    ['request.headers["x-list"] == "a, b"', true],
    ['request.headers["x_debug"] == "1"', true],
    ["!('x-debug' in request.headers)", false],
    ['request.headers["x-env"] == "c" || true', false],
    ['has(request.headers.authorization)', false],
    ['["cookie", "dpop", "authorization", "proxy-authorization", "host"].exists(name, name in request.headers)', false],
    ['["connection", "x-named", "x_auth_subject", "x-forwarded-for"].exists(name, name in request.headers)', false],
    ['request.headers.missing == ""', false],
    ['request.headers["sec-websocket-protocol"] == "chat"', true],
    ['path.tenant == "Acme"', true],
  ])('%s → %s', (text, expected) => {
    const connection = { remoteAddress: '::ffff:192.0.2.7' };
    expect(evaluate(text, { headers, connection, bound: { tenant: 'Acme' } })).toBe(expected);
  });

  it.each(['path.tenant == token.tenant', 'path.tenant == ""', 'path.tenant != "x"'])(
    '%s with an empty binding → refused',
    (text) => {
      expect(evaluate(text, { claims: { tenant: '' }, bound: { tenant: '' } })).toBe(false);
    },
  );

  it('no address of the client → an error, which refuses', () => {
    expect(evaluate('request.client_ip != "192.0.2.7"')).toBe(false);
  });
});

describe('problems', () => {
  const issuers = { staff: { issuer: 'https://id.example/', audience: 'orders' } };
  it.each<readonly [when: string, message: string]>([
    ['tokn.tenant == 1', 'There is no variable tokn. Did you mean token? (character 1 of the condition).'],
    [
      'request.metod == "GET"',
      'There is no member request.metod. Did you mean method? (character 8 of the condition).',
    ],
    ['request["method"] == 1', '== does not take string and int'],
    ['request == 1', 'Write request with one of its members'],
    ['path.other == "a"', 'Neither the path nor each host binds {other}.'],
    ['path.tenant.x == "a"', 'A string has no member x'],
    ['now.x', 'A timestamp has no member x'],
    ['[1].x', 'A list has no member x'],
    ['token.level = 3', 'The condition is not valid CEL: "=" is not expected (character 13 of the condition).'],
    ['token.level ==', 'The condition is not valid CEL: "==" is not expected (character 13 of the condition).'],
    ['"abc', 'The condition is not valid CEL: "\\"abc" is not expected (character 1 of the condition).'],
    ['// nothing', 'The condition is not valid CEL'],
    ['token.a &&\n  tokn.b', 'There is no variable tokn. Did you mean token? (line 2, character 3 of the condition).'],
    ['token.a.matches("x")', 'Regular expressions are not accepted.'],
    ['token.a.startWith("x")', 'There is no function startWith. Did you mean startsWith?'],
    ['token.a.exist(x, x == 1)', 'There is no function exist. Did you mean exists?'],
    ['has(token)', 'has does not take these arguments'],
    ['1 + "a" == 2', '+ does not take int and string'],
    ['!token.a && !"x"', '! does not take string'],
    ['now == "x"', '== does not take timestamp and string'],
    ['request.method in [1, 2]', 'in does not take string and list'],
    ['"a" in request.method', 'in does not take string and string'],
    ['request.method[0] == "G"', '[] does not take string and int'],
    ['true ? 1 : "a"', '?: does not take bool and int and string'],
    ['"a" ? true : false', '?: does not take string and bool and bool'],
    ['token.a && 1', 'The type is int, and a condition is a bool (character 12 of the condition).'],
    ['"text"', 'The type is string, and a condition is a bool'],
    ['size(token.a)', 'The type is int, and a condition is a bool'],
    ['true || 1', '|| does not take bool and int'],
    ['request.method.exists(x, x == "G")', 'A string has no items'],
    ['startsWith("a", "b")', 'startsWith does not take string and string'],
    ['size() == 1', 'size does not take nothing'],
    ['now.getHours(token.zone) == 1', 'getHours needs a time zone in quotation marks'],
    ['now.getHours("Nowhere/X") == 1', 'getHours needs a time zone in quotation marks'],
    ['token.a == 9007199254740992', '9007199254740992 is beyond ±(2^53 − 1).'],
    ['token.a == -9007199254740992', '-9007199254740992 is beyond ±(2^53 − 1).'],
    ['token.a == 9007199254740992u', '9007199254740992 is beyond ±(2^53 − 1).'],
    ['google.protobuf.Timestamp{seconds: 1} == now', 'There is no message google.protobuf.Timestamp'],
    ['token.a.all(x, x.all(y, y.all(z, z)))', 'Comprehensions are nested more than 2 deep'],
    [`token${'.a'.repeat(100)}`, 'The condition is nested more than 100 deep'],
    [`${'['.repeat(101)}1${']'.repeat(101)} == token.a`, 'The condition is nested more than 100 deep'],
    [`token.a == "${'x'.repeat(4090)}"`, 'The condition has more than 4096 bytes.'],
  ])('%s → %s', (when, message) => {
    const text = JSON.stringify({ issuers, rules: [{ id: 'r', path: '/{tenant}', when }] }, undefined, 2);
    const line = text.split('\n').findIndex((each) => each.includes('"when"')) + 1;
    const start = `${line}:7 The condition of the rule "r" cannot be used. ${message}`;
    expect(problemsOf(text)).toEqual([expect.stringContaining(start)]);
  });

  it.each(['open', 'deny'])('"access": "%s" with "when" → a problem', (access) => {
    const rules = [{ id: 'r', path: '/', access, when: 'true' }];
    expect(problemsOf({ rules })).toEqual([expect.stringContaining('so "when" has no effect')]);
  });

  it.each<readonly [hosts: readonly string[], isSound: boolean]>([
    [['{tenant}.example'], true],
    [['{tenant}.example', '{tenant}.{region}.example'], true],
    [['{tenant}.example', 'b.example'], false],
  ])('a name that %j bind → usable: %s', (hosts, isSound) => {
    const rules = [{ id: 'r', path: '/', hosts, when: 'token.tenant == path.tenant' }];
    expect(problemsOf({ issuers, rules }).length === 0).toBe(isSound);
  });

  it('null, an empty text → a problem of the form', () => {
    for (const when of [null, '', ' ', 1]) {
      const problems = problemsOf({ issuers, rules: [{ id: 'r', path: '/', when }] });
      expect(problems).toEqual([expect.stringContaining('Write a condition in CEL')]);
    }
  });
});

it.each<readonly [string, boolean]>([
  ['type(token.int) == int && token.int + 1 == 2 && token.int == token.dec', true],
  ['type(token.dec) == double && type(token.exp) == double && token.exp == 1000', true],
  ['type(token.deep.l[0]) == double && type(token.deep.l[1]) == int && token.s == "1.0"', true],
  ['token.dec + 1 == 2', false],
  ['token.big == "1.0000000000000000000"', true],
])('numbers as the token has them: %s → %s', (text, expected) => {
  const json =
    '{"int": 1, "dec": 1.0, "exp": 1E3, "deep": {"l": [2.00, 2]}, "s": "1.0", "big": 1.0000000000000000000, "sub": null}';
  const facts = { ...factsOf({ claims: {} }), jwt: `e30.${Buffer.from(json).toString('base64url')}.c2ln` };
  const token = { ...facts.token, claims: parseClaims({}) };
  expect(compile(text).check.passes({ ...facts, token })).toBe(expected);
  expect(compile('has(token.sub)').check.passes({ ...facts, token })).toBe(false);
});

it.each(
  [...readFileSync('UPGRADE.md', 'utf8').matchAll(/^ {2}\| `(\{ "claim".*?)` \| `(".*")` \|$/gm)].map(
    ([, before, when]) => [before, when] as const,
  ),
)('%s of earlier versions → %s', (before = '', when = '') => {
  const claims = { tenant: 'acme', realm_access: { roles: ['admin'] }, amr: ['otp'] };
  const [text, { claim }] = [JSON.parse(when) as string, JSON.parse(before) as { claim: string | readonly string[] }];
  const [name = ''] = [claim].flat();
  expect(evaluate(text, { claims, bound: { tenant: 'acme' } })).toBe(true);
  for (const other of [undefined, 'other', ['other'], { roles: ['other'] }]) {
    expect(evaluate(text, { claims: { ...claims, [name]: other }, bound: { tenant: 'acme' } })).toBe(false);
  }
});

describe('hostile claims', () => {
  const jsonOf = (text: string): object => JSON.parse(text) as object;
  it.each<readonly [string, object, boolean]>([
    ['token.a == {"x": "y"}', jsonOf('{"a": {"__proto__": {}}}'), false],
    ['token.a == token.b', jsonOf('{"a": {"__proto__": {}}, "b": {"x": 1}}'), false],
    ['{"x": "y"} == token.a', jsonOf('{"a": {"__proto__": "y"}}'), false],
    ['has(token.constructor) || has(token.toString) || has(token.__proto__)', {}, false],
    ['"constructor" in token || "__proto__" in token.a', { a: {} }, false],
    ['token.constructor == "x"', jsonOf('{"constructor": "x"}'), true],
    ['token["__proto__"] == 1', jsonOf('{"__proto__": 1}'), true],
    ['token.admin == true', { admin: { $typeName: 'google.protobuf.BoolValue', value: true } }, false],
    ['token.admin', { admin: { $typeName: 'google.protobuf.BoolValue', value: true } }, false],
    ['token.a == timestamp(0)', { a: { $typeName: 'google.protobuf.Timestamp', seconds: 0, nanos: 0 } }, false],
    ['size(token.a) == 0', { a: { size: 0, length: 0 } }, false],
    ['token.level > 2', { level: { valueOf: 3 } }, false],
    ['token.level >= 3', { level: '3' }, false],
    ['token.level >= 3', { level: [3] }, false],
    ['duration(token.d) > duration("0s")', { d: '9'.repeat(12_000) }, false],
    ['int(token.d) >= 0 || double(token.d) >= 0.0', { d: '1'.repeat(12_000) }, false],
    ['timestamp(token.d) > now', { d: '2030-01-01 00:00:00' }, false],
    ['timestamp(token.d) > now', { d: 1e11 }, true],
    ['timestamp(token.d) > now', { d: 1e13 }, false],
  ])('%s with %.80j → %s', (text, claims, expected) => {
    expect(evaluate(text, { claims })).toBe(expected);
  });

  const list = (length: number): object => ({ l: Array.from({ length }, (_, i) => i), m: { l: [1] } });
  it.each<readonly [string, number, boolean]>([
    ['token.l.all(x, x >= 0)', 10_000, true],
    ['token.l.all(x, x >= 0)', 10_001, false],
    ['token.l.exists(x, token.l.exists(y, x + y == 198))', 100, true],
    ['token.l.exists(x, token.l.exists(y, x + y == 0))', 101, false],
    ['token.m.l.all(x, x == 1)', 20_000, true],
    ['token.exists(k, k == "l")', 20_000, false],
    ['size(token.l) > 0 && 3 in token.l', 20_000, true],
    ['token.l.all(x, x in token.l)', 300, true],
    ['token.l.all(x, x in token.l)', 3000, false],
    ['(token.l + token.l + token.l).all(x, x >= 0)', 9000, true],
    [`(${Array.from({ length: 60 }, () => 'token.l').join(' + ')}).all(x, x >= 0)`, 9000, false],
    ['token.l.filter(x, x > 0).size() > 0', 9000, true],
    ['token.l.filter(x, x > 0).all(x, x > 0)', 200, true],
    ['token.l.filter(x, x > 0).all(x, x > 0)', 2000, false],
    ['token.l.all(x, token.l == token.l)', 2000, false],
  ])('%s, %i items → %s', (text, length, expected) => {
    expect(evaluate(text, { claims: list(length) })).toBe(expected);
  });

  const long = {
    l: Array.from({ length: 3000 }, (_, i) => i),
    s: 'ab'.repeat(2000),
    t: `${'ab'.repeat(500)}aa${'ab'.repeat(450)}`,
  };
  it.each<readonly [string, object, boolean]>([
    ['token.l.all(x, !token.s.contains(token.t))', long, false],
    ['token.l.all(x, !token.s.contains(token.t))', { ...long, l: [1] }, true],
    ['!token.s.contains(token.t)', long, true],
    ['token.l.all(x, string(bytes(token.s)) != "")', long, false],
    ['token.l.all(x, !(int(token.d) == 1))', { ...long, d: '1'.repeat(5000) }, false],
    ['token.l.all(x, x >= 0)', long, true],
    ['token.m.all(k, k != "")', { m: { [long.s]: 1, b: 2 } }, true],
    ['token.m.all(k, k != "" && token.l.all(x, x >= 0))', { m: { [long.s]: 1, b: 2 }, l: long.l }, false],
    ['token.l.all(x, timestamp(x).getHours("UTC") >= 0)', { l: long.l.slice(0, 2000) }, true],
    ['token.l.all(x, timestamp(x).getHours("UTC") >= 0)', { l: [...long.l, ...long.l] }, false],
  ])('%s with long strings → %3$s', (text, claims, expected) => expect(evaluate(text, { claims })).toBe(expected));

  it('contains, of long strings → as `includes` says', () => {
    const { check } = compile('token.s.contains(token.t)');
    const s = `${'ab'.repeat(300)}${'aab'.repeat(100)}${'abaab'.repeat(60)}`;
    for (let from = 0; from < s.length - 300; from += 7) {
      const part = s.slice(from, from + 300);
      for (const t of [part, `${part}b`, `${part}aa`, `x${part}`, `${part.slice(1)}${part.slice(0, 90)}`]) {
        expect([t, check.passes(factsOf({ claims: { s, t } }))]).toEqual([t, s.includes(t)]);
      }
    }
  });

  it.each(['[', '{"a":'])('claims of 12 KiB that are nested by %s → no claims', (open) => {
    const text = `{"a": ${open.repeat(2000)}1${(open === '[' ? ']' : '}').repeat(2000)}}`;
    expect(parseJsonObject(Buffer.from(text))).toBeUndefined();
  });

  it('4 KiB of text with 12 KiB of claims → an outcome', () => {
    const clause = 'token.l.exists(x, x == token.s) || ';
    const text = `${clause.repeat(Math.floor(4080 / clause.length))}false`;
    const claims = { l: Array.from({ length: 3000 }, () => 1), s: 'a'.repeat(6000) };
    expect([text.length <= 4096, evaluate(text, { claims })]).toEqual([true, false]);
  });

  it('any claims with any names → no exception, and own members only', () => {
    const name = fc.constantFrom('a', '__proto__', 'constructor', 'toString', 'value', '$typeName', 'length', 'size');
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { depthSize: 'small' },
        fc.integer(),
        fc.double(),
        fc.string(),
        fc.constant(null),
        fc.boolean(),
        fc.array(tie('any')),
        fc.dictionary(name, tie('any')),
      ),
    })).any;
    fc.assert(
      fc.property(fc.dictionary(name, value), name, (claims, member) => {
        const json = JSON.parse(JSON.stringify(claims)) as object;
        expect(evaluate(`has(token.a) && "${member}" in token`, { claims: json })).toBe(
          Object.hasOwn(json, 'a') && Object.hasOwn(json, member),
        );
        evaluate('token.a == token.constructor && token.a.exists(x, x == token["__proto__"]) || token.value > 1', {
          claims: json,
        });
      }),
    );
  });
});

describe('a refusal', () => {
  const show = (text: string, facts: Facts, mode: 'plain' | 'hashed' = 'plain') => {
    const comparison = compile(text).check.compare?.(factsOf(facts));
    return comparison && showComparison(comparison, createDisguise(mode, 'a'.repeat(32)));
  };
  it('the first operand that is not true, with its values', () => {
    const facts = { claims: { a: 1, b: 'x' }, bound: { tenant: 'y' }, headers: new Headers({ 'x-a': 'secret' }) };
    expect(show('token.a == 1 && token.b == path.tenant && token.c', facts)).toEqual({
      expected: 'token.b == path.tenant',
      received: ['token.b = "x"', 'path.tenant = "y"'],
    });
    expect(show('token.a == 1 && (token.b == "y" || token.c > now)', facts)).toEqual({
      expected: 'token.b == "y" || token.c > now',
      received: ['token.b = "x"', 'token.c = (absent)', 'now = "2027-06-07T10:00:00.000Z"'],
    });
    const ternary = '(token.a == 1) ? (token.b == "y") : true';
    expect(show(ternary, facts)).toEqual({ expected: ternary, received: ['token.a = 1', 'token.b = "x"'] });
    expect(show('token.l.exists(x, x == token.b)', { claims: { l: ['z'], b: 'x' } })).toEqual({
      expected: 'token.l.exists(x, x == token.b)',
      received: ['token.l = ["z"]', 'token.b = "x"'],
    });
    expect(show('!has(token.b)', facts)).toEqual({ expected: '!has(token.b)', received: ['token.b = "x"'] });
  });

  it('values are hashed unless identities are shown; values of headers always', () => {
    const facts = { claims: { b: 'alice' }, headers: new Headers({ 'x-a': 'secret' }) };
    const text = 'token.b == "bob" && true && request.headers["x-a"] == token.b';
    expect(show(text, facts, 'hashed')?.received).toEqual([expect.stringMatching(/^token\.b = #[\w-]{22}$/)]);
    const header = show('request.headers["x-a"] == token.b', facts, 'plain')?.received;
    expect(header).toEqual([expect.stringMatching(/^request\.headers\["x-a"\] = #[\w-]{22}$/), 'token.b = "alice"']);
    const same = { headers: new Headers({ 'x-a': 'alice' }) };
    const again = show('request.headers["x-a"] == "secret2"', same, 'hashed')?.received;
    const hash = (shown: unknown): string | undefined => /#\S+$/.exec(String([shown].flat()[0]))?.[0];
    expect(hash(again)).toBe(hash(show(text, facts, 'hashed')?.received));
  });

  it('long lists → their length', () => {
    expect(show('token.l.all(x, true)', { claims: { l: Array.from({ length: 10_001 }, () => 1) } })).toEqual({
      expected: 'shorter lists and strings',
      received: '10001 items, 0 characters',
    });
  });
});

describe('evaluation', () => {
  it('only the token is read → once for each token', () => {
    const { check, readsRequest } = compile('token.l.exists(x, x == 1)');
    let reads = 0;
    const facts = factsOf({ claims: { l: [1] } });
    const claims = new Proxy(facts.token.claims, {
      ownKeys(target) {
        reads++;
        return Reflect.ownKeys(target);
      },
    });
    const counted = { ...facts, token: { ...facts.token, claims } };
    expect([check.passes(counted), check.passes(counted), reads, readsRequest]).toEqual([true, true, 1, false]);
    expect(compile('token.a == request.method').readsRequest).toBe(true);
    expect(compile('timestamp(token.a) < now').readsRequest).toBe(true);
  });

  it('the same claims at another time, of another request → evaluated again', () => {
    const { check } = compile('timestamp(token.until) > now && request.headers["x-a"] == "1"');
    const facts = factsOf({ claims: { until: 1812362401 }, headers: new Headers({ 'x-a': '1' }) });
    expect(check.passes(facts)).toBe(true);
    expect(check.passes({ ...facts, now: facts.now + 1 })).toBe(false);
    expect(check.passes({ ...facts, conditionCall: factsOf().conditionCall })).toBe(false);
    expect(check.passes({ ...facts, conditionCall: undefined })).toBe(false);
  });

  it('an error leaves no trace limit behind', () => {
    const before = Error.stackTraceLimit;
    evaluate('token.missing == 1');
    expect(Error.stackTraceLimit).toBe(before);
  });
});

describe('the gate', () => {
  const issuer = createTestIssuer();
  const issuers = { staff: { issuer: issuer.issuer, audience: 'orders' } };
  interface Call {
    readonly claims?: Readonly<Record<string, unknown>>;
    readonly path?: string;
    readonly token?: boolean;
  }
  async function decide(rule: object, { claims = {}, path = '/t/acme', token = true }: Call = {}) {
    const rules = [{ id: 'r', path: '/t/{tenant}', issuers: ['staff'], ...rule }];
    const gate = createGate({
      rules: readValidRules({ issuers, rules }),
      readClientAddress: createReadClientAddress('all'),
      openServer: () => createResourceServer({ issuers: [issuer], audience: issuer.audience }),
    });
    const own = { host: 'api.example', 'x-forwarded-for': '192.0.2.9' };
    const headers = new Headers({ ...own, ...(token && issuer.headers(claims)) });
    const request = { method: 'GET', url: `https://api.example${path}`, target: path, headers };
    const decision = await gate.decide(request, { encrypted: true }, { peer: { remoteAddress: '127.0.0.1' } });
    if (decision.kind === 'refused')
      return { status: decision.refusal.status, ...(decision.error as { reason: string }) };
    return decision.wouldRefuse ?? 'admitted';
  }
  const tenant = { when: 'token.tenant == path.tenant' };

  it.each<readonly [string, object, Parameters<typeof decide>[1], unknown]>([
    ['a claim that matches', tenant, { claims: { tenant: 'acme' } }, 'admitted'],
    ['another claim', tenant, { claims: { tenant: 'x' } }, { status: 403, reason: 'condition_not_met' }],
    ['no claim', tenant, {}, { status: 403, reason: 'condition_not_met' }],
    ['a missing scope as well', { ...tenant, scopes: ['a'] }, {}, { status: 403, reason: 'insufficient_scope' }],
    ['a missing permission as well', { ...tenant, permissions: ['a'] }, {}, { reason: 'missing_permission' }],
    ['no token', tenant, { token: false }, { status: 401, reason: 'missing_credentials' }],
    ['an anonymous caller', { ...tenant, access: 'optional' }, { token: false }, 'admitted'],
    ['a caller with a token', { ...tenant, access: 'optional' }, {}, { reason: 'condition_not_met' }],
    ['report mode', { ...tenant, mode: 'report' }, {}, { reason: 'condition_not_met' }],
    ['the address that a proxy names', { when: 'request.client_ip == "192.0.2.9"' }, {}, 'admitted'],
    ['a decoded segment', tenant, { path: '/t/a%20b', claims: { tenant: 'a b' } }, 'admitted'],
    ['the document of the client address', { when: clientAddress() }, {}, { reason: 'condition_not_met' }],
  ])('%s', async (_what, rule, call, expected) => {
    const outcome = await decide(rule, call);
    if (typeof expected === 'string') expect(outcome).toBe(expected);
    else expect(outcome).toMatchObject(expected as object);
  });
});

function clientAddress(): string {
  const page = readFileSync('docs/gate/rules.md', 'utf8');
  return /"(request\.client_ip.*?)" }/.exec(page)?.[1]?.replace("'192.0.2.'", "'198.51.100.'") ?? '';
}
