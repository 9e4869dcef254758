import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { problemsOf, readValidRules } from '../support/read-rules.ts';

const staff = '"staff": { "issuer": "https://id.example/", "audience": "orders" }';

/** A file with these rules, a line each from line 3, and these issuers on line 2. */
const withRules = (rules: readonly string[], issuers = staff): string =>
  `{\n"issuers": { ${issuers} }, "rules": [\n${rules.join(',\n')}\n] }`;

const all = '{ "id": "all", "path": "/**" }';

const notJson = 'This is not JSON. Check for an extra or missing comma, a comment, or a missing quotation mark.';
const openRule = all.replace('}', ', "access": "open" }');
const noTarget =
  '3:14 The gate refuses requests with such a path, so this rule would never match. Write it without . and .. segments, //, ;, \\ and escapes of them.';
const badIssuer = '2:14 The issuer "staff" cannot be used:';

type BadFile = readonly [claim: string, text: string, problems: readonly string[]];
/** What is wrong, where it stands, and what the operator reads. */
const badFiles: readonly BadFile[] = [
  ['empty file', '', [`1:1 ${notJson}`]],
  ['comma too many', '{\n  "rules": [],\n}', [`3:1 ${notJson}`]],
  ['a text', '"rules"', ['1:1 The file does not contain an object. Write an object with "rules".']],
  ['no rules', '{}', ['1:1 "rules" is missing. Write a list of rules: at least one.']],
  ['empty rules', '{ "rules": [] }', ['1:3 "rules" is not valid. Write a list of rules: at least one.']],
  ['duplicate', '{\n"rules": [],\n"rules": []\n}', ['3:1 "rules" is a duplicate in this object. Keep one of the two.']],
  [
    'a misspelt "issuers" → no problem that only follows from it',
    `{ "isuers": { ${staff} }, "rules": [ ${all} ] }`,
    ['1:3 There is no member "isuers" here. Did you mean issuers?'],
  ],
  ...['/a;b', '/a%2Eb', '/a%252F'].map(
    (path): BadFile => [
      `a path that is always refused: ${path}`,
      withRules([`{ "id": "a", "path": "${path}" }`]),
      [noTarget],
    ],
  ),
  [
    'no issuers',
    withRules([all], ''),
    ['3:1 The rule "all" requires a token, and the file has no issuers. Add "issuers", or write "access": "open".'],
  ],
  ...[
    ['http without "insecure"', '"http://id.example/keys"'],
    ['credentials', '"https://user:secret@id.example/keys"'],
    ['credentials, though "insecure"', '"http://user:secret@id.example/keys", "insecure": true'],
    ['a fragment', '"https://id.example/keys#a"'],
    ['a port that there is not', '"https://id.example:99999/keys"'],
    ['no host', '"https://"'],
  ].map(
    ([claim, jwksUri]): BadFile => [
      `jwksUri with ${claim}`,
      withRules([all], `"staff": { "issuer": "https://id.example/", "audience": "a",\n"jwksUri": ${jwksUri} }`),
      [
        `${badIssuer} jwksUri: write an https URL without credentials and fragment${jwksUri?.includes('true') ? '' : '; a provider without TLS needs insecure: true'}.`,
      ],
    ],
  ),
  ...['open', 'deny'].map(
    (access): BadFile => [
      `streams of a rule with access ${access}`,
      withRules([`{ "id": "a", "path": "/", "access": "${access}", "streams": "outlive-token" }`]),
      [`3:45 A rule with "access": "${access}" validates no token, so "streams" has no effect. Remove one of the two.`],
    ],
  ),
  [
    'an identity header with a meaning of its own',
    `{ "rules": [${openRule}],\n"identity": { "Authorization": "sub" } }`,
    ['2:15 The header "Authorization" has another meaning. Write another name, such as "X-Auth-Subject".'],
  ],
  [
    'an identity header with an underscore',
    `{ "rules": [${openRule}],\n"identity": { "X_Auth": "sub" } }`,
    ['2:15 "X_Auth" is not valid. Write names of headers with letters, digits and hyphens, as in "X-Auth-Subject".'],
  ],
  [
    'two identity headers that are one',
    `{ "rules": [${openRule}],\n"identity": { "X-A": "sub",\n"x-a": "iss" } }`,
    ['3:1 "x-a" and "X-A" are the same header. Keep one of them.'],
  ],
  [
    'a member twice, in an object in a list and with an escape',
    withRules(['{ "id": "a", "path": "/",\n"\\u0069d": "b" }']),
    ['4:1 "id" is a duplicate in this object. Keep one of the two.'],
  ],
  [
    'nested without end',
    `{ "rules": ${'['.repeat(30)}${']'.repeat(30)} }`,
    ['1:31 The file is nested more than 20 deep. A rules file needs 5.'],
  ],
];

/** Likewise: rules, a line each from line 3, then the issuers on line 2 if they are others, then the problems. */
const badRules = String.raw`
numbers that are inexact → each reported
  { "id": "a", "path": "/a", "maxAge": 60.0000000000000001 }
  { "id": "b", "path": "/b", "maxAge": 9007199254740993 }
  { "id": "c", "path": "/c", "maxAge": 1e400 }
  3:38 A number cannot hold this value exactly. Write at most 17 digits below 2^53, or a string in quotation marks.
  4:38 A number cannot hold this value exactly. Write at most 17 digits below 2^53, or a string in quotation marks.
  5:38 A number cannot hold this value exactly. Write at most 17 digits below 2^53, or a string in quotation marks.
an invalid form and other problems → all reported
  { "id": "a", "path": "/a/**/b" }
  { "id": "b", "path": "/b", "mode": "no", "issuers": ["staff", "none"] }
  { "id": "c", "path": "/c/../d", "dpop": "maybe" }
  { "id": "a", "path": "/e", "issuers": ["nobody"] }
  { "id": "f", "path": "/f", "issuers": ["bad"] }
  { "id": "g", "path": "/f" }
  "staff": { "issuer": "https://id.example/", "audience": "orders" }, "bad": { "issuer": 5 }
  2:91 "issuer" is not valid. Write the issuer as iss has it, as in "https://id.example/realms/main", or its domain.
  4:28 "mode" is not valid. Write "enforce" or "report". With report, refusals are only logged and counted. Default: enforce.
  5:33 "dpop" is not valid. Write "allowed", "required" or "off". Mode of DPoP. Default: the mode of the gate’s settings.
  4:63 There is no issuer "none" in this file. Write any of: staff, bad.
  5:14 The gate refuses requests with such a path, so this rule would never match. Write it without . and .. segments, //, ;, \ and escapes of them.
  3:14 ** is allowed at the end only. Use * for one segment in the middle.
  3:1 The file has several issuers, and the rule "a" does not name its own. Add "issuers" with any of: staff, bad.
  6:40 There is no issuer "nobody" in this file. Write any of: staff, bad.
  6:3 The id "a" is also on line 3. Give each rule a unique id.
  8:1 The file has several issuers, and the rule "g" does not name its own. Add "issuers" with any of: staff, bad.
  8:14 The rule "g" and the rule "f" on line 7 match the same requests, and neither is more specific. Change hosts, path or methods of one.
misspelt members → each reported
  { "id": "all", "path": "/**", "scope": ["a"], "method": ["GET"] }
  3:31 There is no member "scope" here. Did you mean scopes?
  3:47 There is no member "method" here. Did you mean methods?
no id, no path
  {}
  3:1 "id" is missing. Write a name of letters, digits, dots, hyphens, 64 characters at most, as in "orders-write": logs and metrics show it.
  3:1 "path" is missing. Write a path that begins with a slash, as in "/orders/**": * is one segment, ** at the end is any remainder.
a part of a segment
  { "id": "a", "path": "/a/b*" }
  3:14 A * is one complete segment. Write it between slashes, or write %2A for the character.
hosts that no request has, and a path → each is reported
  { "id": "a", "path": "/a/**/b", "hosts": ["a", "a..b", "a:99999"] }
  { "id": "b", "path": "/" }
  3:48 Item 2 of "hosts" is not valid. Write each host as in "api.example.com" or "[2001:db8::1]:8443", or as a suffix with a wildcard and without a port, as in "*.example.com".
  3:56 Item 3 of "hosts" is not valid. Write each host as in "api.example.com" or "[2001:db8::1]:8443", or as a suffix with a wildcard and without a port, as in "*.example.com".
  3:14 ** is allowed at the end only. Use * for one segment in the middle.
the reserved id
  { "id": "unmatched", "path": "/**" }
  3:3 The id "unmatched" is reserved: logs and metrics use it for requests without a rule. Write another id.
two names of one issuer
  { "id": "a", "path": "/", "issuers": ["staff", "again"] }
  "staff": { "issuer": "https://id.example/", "audience": "orders" }, "again": { "issuer": "https://id.example/", "audience": "orders" }
  3:48 "again" and "staff" are the same issuer, so the rules for its tokens would be ambiguous. Name one of them in each rule.
an issuer without audience
  { "id": "all", "path": "/**" }
  "staff": { "issuer": "https://id.example/" }
  2:14 The issuer "staff" cannot be used: audience: name at least one, none of them empty; it is the identifier of this API at the issuer. For tokens that have no aud name clientIds.
an issuer with user information
  { "id": "all", "path": "/**" }
  "staff": { "issuer": "https://user:secret@id.example/", "audience": "a" }
  2:14 The issuer "staff" cannot be used: issuer: take the user information out; write idp.example, or https://idp.example/.
an insecure issuer with a port that there is not
  { "id": "all", "path": "/**" }
  "staff": { "issuer": "http://id.example:99999/", "audience": "a", "insecure": true }
  2:14 The issuer "staff" cannot be used: issuer: write https:// (RFC 8414 §2); with jwksUri an http issuer is accepted; for a provider without TLS in development add insecure: true.
an algorithm that is never allowed
  { "id": "all", "path": "/**" }
  "staff": { "issuer": "https://id.example/", "audience": "a", "algorithms": ["HS256"] }
  2:90 Item 1 of "algorithms" is not valid. Write a list with any of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, Ed25519, ML-DSA-44, ML-DSA-65, ML-DSA-87. Default: RS256.
scopes of an open rule
  { "id": "a", "path": "/", "access": "open", "scopes": ["a"] }
  3:45 A rule with "access": "open" validates no token, so "scopes" has no effect. Remove one of the two.`
  .split(/\n(?! )/)
  .slice(1)
  .map((block): BadFile => {
    const [claim = '', ...lines] = block.split('\n  ');
    const find = (start: RegExp): readonly string[] => lines.filter((line) => start.test(line));
    return [claim, withRules(find(/^\{/), ...find(/^"/)), find(/^\d/)];
  });

/** An item that a list does not take, and its fix. */
const wrongItems: readonly (readonly [member: string, item: unknown, fix: string])[] = [
  ['methods', 'get', 'Write each method in capital letters, as in "GET".'],
  ['hosts', 'https://api.example', 'Write each host as in "api.example.com" or "[2001:db8::1]:8443"'],
  ['scopes', 'read:a write:a', 'Write each scope as one string, without spaces and quotation marks.'],
];

/** A value that the member does not take, and how its fix begins. */
type WrongMember = readonly [member: string, value: unknown, fix: string];

const wrongInRule: readonly WrongMember[] = [
  ['id', 'a b', 'Write a name of letters, digits, dots, hyphens'],
  ['id', 'x'.repeat(65), 'Write a name of letters, digits, dots, hyphens'],
  ['hosts', 'api.example', 'Write a list of hosts'],
  ['hosts', [], 'Write a list of hosts'],
  ['path', '/a?b', 'Write a path that begins with a slash'],
  ['path', 'orders', 'Write a path that begins with a slash'],
  ['path', 7, 'Write a path that begins with a slash'],
  ['methods', 'GET', 'Write a list of methods'],
  ['methods', [], 'Write a list of methods'],
  ['access', 'public', 'Write "token", "optional", "open" or "deny"'],
  ['access', true, 'Write "token", "optional", "open" or "deny"'],
  ['issuers', 'staff', 'Write a list with names of "issuers"'],
  ['audience', 7, 'Write '],
  ['scopes', 'read', 'Write a list of scopes'],
  ['anyScope', [], 'Write a list of scopes'],
  ['permissions', 'orders:read', 'Write a list of permissions'],
  ['acr', 1, 'Write an authentication level'],
  ['maxAge', -1, 'Write whole seconds since the user signed in'],
  ['maxAge', 1.5, 'Write whole seconds since the user signed in'],
  ['dpop', true, 'Write "allowed", "required" or "off"'],
  ['mode', 'dry-run', 'Write "enforce" or "report"'],
  ['streams', 'end', 'Write "end-with-token"'],
  ['encodedSlash', true, 'Write "allow"'],
  ['preflight', 'yes', 'Write "allow" or "judge"'],
  ['forward', 'authorization', 'Write ["authorization"]'],
  ['forward', [], 'Write ["authorization"]'],
];

const wrongInIssuer: readonly WrongMember[] = [
  ['issuer', '', 'Write the issuer as iss has it'],
  ['audience', [], 'Write '],
  ['algorithms', 'RS256', 'Write a list with any of RS256'],
  ['algorithms', [], 'Write a list with any of RS256'],
  ['clockTolerance', 61, 'Write seconds by which clocks may differ, 0 to 60.'],
  ['clockTolerance', -1, 'Write seconds by which clocks may differ, 0 to 60.'],
  ['clockTolerance', '5', 'Write seconds by which clocks may differ, 0 to 60.'],
  ['subject', false, 'Write "required" or "optional"'],
  ['permissionsClaim', [], 'Write the name of the claim that contains permissions'],
  ['scopeClaim', '', 'Write the name of the claim that contains scopes'],
  ['clientIds', 'shop', 'Write a list of accepted clients'],
  ['jwksUri', 'file:///keys', 'Write the URL of the keys'],
  ['insecure', 'true', 'Write true for an issuer that is reached over plain http'],
  ['profile', 'at+jwt', 'Write "rfc9068"'],
];

const wrongBeside: readonly WrongMember[] = [
  ['$schema', 7, 'Location of this schema'],
  ['issuers', [], 'Write an object with a member for each issuer'],
  ['rules', {}, 'Write a list of rules'],
  ['identity', ['sub'], 'Write an object of headers and claims'],
  ['resource', 'https://api.example/path', 'Write the origin that serves the metadata'],
  ['preflight', true, 'Write "allow" or "judge"'],
  ['forward', true, 'Write ["authorization"]'],
];

describe('bad rules', () => {
  it.each([...badFiles, ...badRules])('%s', (_claim, text, problems) => {
    expect(problemsOf(text)).toEqual(problems);
  });

  it.each([
    ...wrongInRule.map(([member, value, fix]) => ({ of: 'rule', member, value, fix })),
    ...wrongInIssuer.map(([member, value, fix]) => ({ of: 'issuer', member, value, fix })),
    ...wrongBeside.map(([member, value, fix]) => ({ of: 'file', member, value, fix })),
  ])('$of, "$member": $value → one problem, with what to write: $fix', async ({ of, member, value, fix }) => {
    const wrong = { [member]: value };
    const { rules, issuers, ...rest } = {
      issuers: { staff: { issuer: 'https://id.example/', audience: 'orders', ...(of === 'issuer' && wrong) } },
      rules: [{ id: 'all', path: '/**', ...(of === 'rule' && wrong) }],
      ...(of === 'file' && wrong),
    };
    // A line for each part, so that the place tells which of them is meant.
    const more = Object.entries(rest).map(([name, each]) => `"${name}": ${JSON.stringify(each)}, `);
    const text = `{${more.join('')}\n"issuers": ${JSON.stringify(issuers)},\n"rules": ${JSON.stringify(rules)} }`;
    const problems = problemsOf(text);
    expect(problems).toHaveLength(1);
    const lines = { rules: 3, rule: 3, issuers: 2, issuer: 2, file: 1 } as const;
    const line = lines[member === 'rules' || (member === 'issuers' && of === 'file') ? member : (of as 'rule')];
    expect(problems[0]).toMatch(new RegExp(`^${line}:\\d+ "${member.replace('$', '\\$')}" is not valid\\. `));
    expect(problems[0]).toContain(`is not valid. ${fix}`);
  });

  it.each(wrongItems)('"%s": [%j] → the item is named: %s', async (member, item, fix) => {
    const [problem, ...more] = problemsOf(
      withRules([`{ "id": "a", "path": "/", "${member}": [${JSON.stringify(item)}] }`]),
    );
    expect([problem, more]).toEqual([expect.stringContaining(`Item 1 of "${member}" is not valid. ${fix}`), []]);
  });

  it('no message holds a member of a file that may be a secret', async () => {
    const text = withRules([all], '"staff": { "issuer": "https://user:secret@id.example/", "audience": "a" }');
    expect(problemsOf(text).join()).not.toContain('secret');
  });
});

describe('good rules', () => {
  const example = `{ "$schema": "./node_modules/portcullis/rules.schema.json",
    "issuers": { "staff": { "issuer": "https://id.example/realms/main", "audience": "orders" } },
    "rules": [
      { "id": "health", "path": "/healthz", "access": "open" },
      { "id": "orders-write", "hosts": ["api.example.com"], "path": "/orders/**", "methods": ["POST", "PUT"], "issuers": ["staff"], "scopes": ["write:orders"], "dpop": "required" },
      { "id": "all", "path": "/**", "scopes": ["read:all"], "mode": "report" } ],
    "identity": { "X-Auth-Subject": "sub", "X-Auth-Client": "client_id", "X-Auth-Scope": "scope", "X-Auth-Issuer": "iss" } }`;

  it('the example is read, and each rule knows what it was given and its defaults', async () => {
    const { rules, issuers } = readValidRules(example);
    expect(issuers.get('staff')?.issuer).toBe('https://id.example/realms/main');
    expect(rules).toMatchObject([
      { id: 'health', access: 'open', issuers: [], mode: 'enforce' },
      {
        id: 'orders-write',
        access: 'token',
        issuers: ['staff'],
        dpop: 'required',
        policy: { scopes: ['write:orders'] },
      },
      { id: 'all', access: 'token', issuers: ['staff'], mode: 'report', streams: 'end-with-token', preflight: 'judge' },
    ]);
    expect([rules[2]?.dpop, rules[2]?.encodedSlash]).toEqual([undefined, undefined]);
  });

  it('an issuer without a slash at its end is taken byte for byte; a domain is written out', async () => {
    const issuerOf = async (issuer: string) =>
      readValidRules(withRules([all], `"a": { "issuer": "${issuer}", "audience": "b" }`)).issuers.get('a')?.issuer;
    expect(await issuerOf('https://accounts.example')).toBe('https://accounts.example');
    expect(await issuerOf('id.example')).toBe('https://id.example/');
  });
});

describe('YAML', () => {
  const yaml = `issuers:
  staff: { issuer: https://id.example/, audience: orders }
rules:
  - id: all
    path: /**
    scopes: [read:all]
`;

  it.each([
    ['rules.yml', yaml.replaceAll('\n', '\r\n')],
    ['rules.json', withRules([all]).replaceAll('\n', '\r\n\t')],
  ])('%s with other line ends → read', async (name, text) => expect(problemsOf(text, name)).toEqual([]));

  it('is read as JSON is', async () => {
    const { rules } = readValidRules(yaml, 'rules.yaml');
    expect(rules).toMatchObject([{ id: 'all', issuers: ['staff'], policy: { scopes: ['read:all'] } }]);
  });

  it.each(['9007199254740991', '1E3', '+12', '0x1F'])('maxAge %s → no problem', async (number) => {
    expect(problemsOf(`${yaml}    maxAge: ${number}\n`, 'rules.yml')).toEqual([]);
  });

  it.each<readonly [string, string, RegExp]>([
    ['a problem has its line', yaml.replace('scopes', 'scope'), /^6:5 There is no member "scope" here\./],
    ['unique keys', `${yaml}rules: []\n`, /^7:1 "rules" is a duplicate in this object\. Keep one of the two\./],
    ['no anchors', yaml.replace('[read:all]', '&a [read:all]'), /^6:\d+ Anchors \(&name\) are not accepted/],
    [
      'no aliases',
      yaml.replace('[read:all]', '*a'),
      /^6:\d+ (?:Aliases \(\*name\) are not accepted|This is not valid YAML)/,
    ],
    ['no tags', yaml.replace('all\n', '!!str all\n'), /^4:\d+ Tags \(!name\) are not accepted/],
    ...['9007199254740993', '1e400', '1e-400', '-.inf', '.nan', '0xFFFFFFFFFFFFFFF', '1.0000000000000000001'].map(
      (number) =>
        [
          `no inexact number: ${number}`,
          `${yaml}    maxAge: ${number}\n`,
          /^7:13 A number cannot hold this value exactly\./,
        ] as const,
    ),
    ['unique names, however written', `${yaml}"rules": []\n`, /^7:1 "rules" is a duplicate in this object\./],
    ['unique names in a rule', `${yaml}    "id": b\n`, /^7:5 "id" is a duplicate in this object\./],
    ['a name is a string', '1: a\n"1": b\n', /^2:1 "1" is a duplicate in this object\./],
    ['no merge of <<', `${yaml}<<: { forward: [authorization] }\n`, /^7:1 There is no member "<<" here\./],
    ['no other version', `%YAML 1.1\n---\n${yaml.replace('[read:all]', 'yes')}`, /^8:5 "scopes" is not valid/],
    ['no prototype', `${yaml}__proto__: { forward: [authorization] }\n`, /^7:1 There is no member "__proto__" here\./],
    ['no growth by aliases', 'a: &a [x]\nb: &b [*a, *a]\n', /^1:7 Anchors \(&name\) are not accepted/],
    // A parser that recurses into these ends the process.
    ...['- ', '? ', '[', '{ a: ', '- ? '].map(
      (start) => [`no depth: ${start}`, start.repeat(20_000), /^1:\d+ The file is nested more than 20 deep\./] as const,
    ),
    ['one document', `${yaml}---\nrules: []\n`, /^7:1 The file has more than one document/],
    ['no empty file', '', /^1:1 The file (?:is empty|holds no object)/],
    ['no tabs', yaml.replace('  - id', '\t- id'), /^4:1 This is not valid YAML/],
    ['no yes for true', yaml.replace('[read:all]', 'yes'), /^6:5 "scopes" is not valid/],
  ])('%s', async (_claim, text, expected) => {
    expect(problemsOf(text, 'rules.yml')[0]).toMatch(expected);
  });
});

describe('assertion', () => {
  const assertion = { issuer: 'https://gate.example/', header: 'X-Auth-Assertion' };
  const rule = { id: 'a', path: '/a' };

  const write = (document: object): string => {
    const issuers = { id: { issuer: 'https://id.example/', audience: 'api' } };
    return JSON.stringify({ issuers, rules: [rule], ...document });
  };

  it.each<readonly [string, object, RegExp]>([
    ['no audience anywhere', { assertion }, /sends an assertion without an audience/],
    ['an optional rule, no audience', { assertion, rules: [{ ...rule, access: 'optional' }] }, /without an audience/],
    ['no issuer', { assertion: { header: 'X-A' } }, /"issuer"/],
    ['no header', { assertion: { issuer: 'https://gate.example/' } }, /"header"/],
    ['a header of framing', { assertion: { ...assertion, audience: 'u', header: 'Content-Length' } }, /Content-Length/],
    ['Authorization', { assertion: { ...assertion, audience: 'u', header: 'Authorization' } }, /Authorization/],
    ['an identity header', { assertion: { ...assertion, audience: 'u', header: 'x-auth-Subject' } }, /identity header/],
    ['a gate claim', { assertion: { ...assertion, audience: 'u', claims: ['email', 'aud'] } }, /claim "aud" itself/],
    ['a lifetime of 4 s', { assertion: { ...assertion, audience: 'u', lifetime: 4 } }, /5 to 300/],
    ['a lifetime of 301 s', { assertion: { ...assertion, audience: 'u', lifetime: 301 } }, /5 to 300/],
    [
      'a rule without the top-level member',
      { rules: [{ ...rule, assertion: { audience: 'u' } }] },
      /has no "assertion"/,
    ],
    [
      'an open rule with its own',
      {
        assertion: { ...assertion, audience: 'u' },
        rules: [{ ...rule, access: 'open', assertion: { audience: 'v' } }],
      },
      /validates no token/,
    ],
  ])('%s → a problem', async (_input, document, problem) => {
    expect(problemsOf(write(document))).toEqual(expect.arrayContaining([expect.stringMatching(problem)]));
  });

  it.each<readonly [string, object, object | undefined]>([
    ['the common audience', { assertion: { ...assertion, audience: 'u' } }, { audience: 'u', isBound: false }],
    [
      'bind for all rules, off for one',
      { assertion: { ...assertion, audience: 'u', bind: true }, rules: [{ ...rule, assertion: { bind: false } }] },
      { audience: 'u', isBound: false },
    ],
    ['its own', { assertion, rules: [{ ...rule, assertion: { audience: 'v' } }] }, { audience: 'v', isBound: false }],
    ['off', { assertion, rules: [{ ...rule, assertion: 'off' }] }, undefined],
    ['an open rule', { assertion, rules: [{ ...rule, access: 'open' }] }, undefined],
  ])('%s → the assertion of the rule', (_input, document, expected) => {
    expect(readValidRules(write(document))).toMatchObject({ rules: [{ assertion: expected }] });
  });
});

const schemaFile = 'schema/rules.schema.json';

it('schema: each member has a description, and no object accepts unknown members', () => {
  const lacking: string[] = [];
  const visit = (schema: unknown, path: string): void => {
    if (typeof schema !== 'object' || schema === null) return;
    const { properties, additionalProperties } = schema as Readonly<Record<string, unknown>>;
    for (const [name, member] of Object.entries((properties as object | undefined) ?? {})) {
      const { description } = member as { readonly description?: string };
      if (description === undefined || description === '') lacking.push(`${path}/${name}`);
    }
    if (properties !== undefined && additionalProperties !== false) lacking.push(path);
    for (const [name, inner] of Object.entries(schema)) visit(inner, `${path}/${name}`);
  };
  visit(JSON.parse(readFileSync(schemaFile, 'utf8')), '');
  expect(lacking).toEqual([]);
});

it('schema: the package exports it', () => {
  const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly exports: object };
  expect(exports).toMatchObject({ './rules.schema.json': `./${schemaFile}` });
  expect(exports).toMatchObject({ './signals.schema.json': './schema/signals.schema.json' });
});
