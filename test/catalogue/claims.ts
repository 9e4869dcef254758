import { words } from '../support/words.ts';
import { listCases, type Make } from './row.ts';
import type { World } from './world.ts';

const claim =
  (name: string, value: unknown | ((world: World) => unknown)): Make =>
  (world) =>
    world.mint({ claims: { [name]: typeof value === 'function' ? value(world) : value } });
/** The JSON of good claims, as changed. */
const text =
  (change: (text: string) => string): Make =>
  ({ mint, provider, now, marker }) => {
    const { issuer: iss, audience: aud } = provider;
    return mint({
      claimsBytes: change(JSON.stringify({ iss, aud, sub: 'user|1', iat: now(), exp: now() + 3600, marker })),
    });
  };
/** A member as JSON instead of the usual one. */
const raw = (name: string, json: string): Make =>
  text((claims) => {
    const { [name]: _, ...rest } = JSON.parse(claims);
    return `{"${name}":${json},${JSON.stringify(rest).slice(1)}`;
  });
const append = (members: string): Make => text((claims) => `${claims.slice(0, -1)},${members}}`);

/** Values of every JSON type; a claim leaves out those that it may have. */
const wrongTypes: Readonly<Record<string, unknown>> = {
  null: null,
  true: true,
  false: false,
  zero: 0,
  'a negative number': -1,
  'a number': 1_900_000_000,
  'empty text': '',
  text: 'x',
  'an empty list': [],
  'a list': [1],
  'an empty object': {},
  'an object': { x: 1 },
};
const typesOf = (name: string, except: readonly string[] = []) =>
  Object.entries(wrongTypes)
    .filter(([type]) => !except.includes(type))
    .map(([type, value]) => [`${name}: ${type}`, claim(name, value)] as const);

const timeTexts: Readonly<Record<string, string>> = {
  '1e400': '1e400',
  '-1e400': '-1e400',
  '1e-400': '1e-400',
  'zeros after 17 digits': '1900000000.00000000',
  '10^11 + 1': '100000000001',
  'a number of 1000 digits': '9'.repeat(1000),
  'seconds as text': '"1900000000"',
  'a date as text': '"2100-01-01T00:00:00Z"',
  'Infinity as text': '"Infinity"',
  'a list of one number': '[1900000000]',
};
const timesOf = (name: string) =>
  Object.entries(timeTexts).map(([title, json]) => [`${name}: ${title}`, raw(name, json)] as const);

const issuerOf =
  (change: (issuer: string) => unknown): Make =>
  ({ mint, provider }) =>
    mint({ claims: { iss: change(provider.issuer) } });
const audienceOf =
  (change: (audience: string) => unknown): Make =>
  ({ mint, provider }) =>
    mint({ claims: { aud: change(provider.audience) } });
const scoped =
  (claims: Readonly<Record<string, unknown>>): Make =>
  ({ mint }) => ({ path: '/api/private-scoped', headers: ['Authorization', `Bearer ${mint({ claims })}`] });
const later = (name: string, seconds: number): Make => claim(name, ({ now }: World) => now() + seconds);
const jkt = 'A'.repeat(43);

const ourScope = 'read:messages';

/** Attacks by the claims of a token whose signature is good. */
export const claims = listCases([
  {
    attack: 'another issuer',
    source: 'RFC 8725 §3.8, RFC 9068 §4',
    reason: 'invalid_issuer',
    cases: [
      ...typesOf('iss'),
      ['iss absent', claim('iss', undefined)],
      ['iss of another', claim('iss', 'https://evil.example.test/')],
      ['iss without its slash', issuerOf((iss) => iss.slice(0, -1))],
      ['iss with a second slash', issuerOf((iss) => `${iss}/`)],
      ['iss with http', issuerOf((iss) => iss.replace('https', 'http'))],
      ['iss in upper case', issuerOf((iss) => iss.toUpperCase())],
      ['iss as user information', issuerOf((iss) => `${iss.slice(0, -1)}@evil.example.test/`)],
      ['iss as a prefix', issuerOf((iss) => `${iss}evil`)],
      ['iss as a subdomain', issuerOf((iss) => iss.replace('localhost', 'localhost.evil.example.test'))],
      ['iss with a space in front', issuerOf((iss) => ` ${iss}`)],
      ['iss with a NUL behind', issuerOf((iss) => `${iss}\0`)],
      ['iss with a percent escape', issuerOf((iss) => iss.replace('l', '%6c'))],
      ['iss with a look-alike letter', issuerOf((iss) => iss.replace('o', '\u043e'))],
      ['iss in a list', issuerOf((iss) => [iss])],
    ],
  },
  {
    attack: 'token for another resource',
    source: 'RFC 8725 §3.9, RFC 7519 §4.1.3',
    reason: 'invalid_audience',
    cases: [
      ...typesOf('aud'),
      ['aud absent', claim('aud', undefined)],
      ['aud of another', claim('aud', 'https://other.example.test/')],
      ['aud without its slash', audienceOf((aud) => aud.slice(0, -1))],
      ['aud as a prefix', audienceOf((aud) => `${aud}x`)],
      ['aud in upper case', audienceOf((aud) => aud.toUpperCase())],
      ['aud as one of several in a text', audienceOf((aud) => `https://other.example.test/ ${aud}`)],
      ['aud as one of several with a comma', audienceOf((aud) => `https://other.example.test/,${aud}`)],
      ['aud in a list in a list', audienceOf((aud) => [[aud]])],
      ['aud in a list beside a number', audienceOf((aud) => [aud, 1])],
      ['aud in a list beside null', audienceOf((aud) => [null, aud])],
      ['aud as a member', audienceOf((aud) => ({ 0: aud, length: 1 }))],
      ['aud *', claim('aud', '*')],
    ],
  },
  {
    attack: 'token that never ends, or has ended',
    source: 'RFC 7519 §4.1.4, §2',
    reason: 'malformed_exp',
    cases: [
      ...typesOf('exp', ['a number', 'zero']),
      ...timesOf('exp'),
      ['exp: in milliseconds', claim('exp', ({ now }: World) => (now() + 60) * 1000)],
      ['exp: absent', claim('exp', undefined), 'missing_exp'],
      ['exp: zero', claim('exp', 0), 'expired'],
      ['exp: -0', raw('exp', '-0'), 'expired'],
      ['exp: the tolerance ago', later('exp', -5), 'expired'],
      ['exp: a minute ago', later('exp', -60), 'expired'],
    ],
  },
  {
    attack: 'token from before its time',
    source: 'RFC 7519 §4.1.5, §4.1.6',
    reason: 'malformed_nbf',
    cases: [
      ...typesOf('nbf', ['a number', 'zero']),
      ...timesOf('nbf'),
      ['nbf: in a minute', later('nbf', 60), 'not_yet_valid'],
      ['nbf: 10^11', raw('nbf', '100000000000'), 'not_yet_valid'],
      ...typesOf('iat', ['a number', 'zero']).map(([name, make]) => [name, make, 'malformed_iat'] as const),
      ...timesOf('iat').map(([name, make]) => [name, make, 'malformed_iat'] as const),
      ['iat: absent', claim('iat', undefined), 'missing_iat'],
      ['iat: in a minute', later('iat', 60), 'issued_in_future'],
      ['nbf: in milliseconds', claim('nbf', ({ now }: World) => now() * 1000)],
      ['iat: in milliseconds', claim('iat', ({ now }: World) => now() * 1000), 'malformed_iat'],
    ],
  },
  {
    attack: 'invalid subject',
    source: 'RFC 9068 §2.2',
    reason: 'malformed_sub',
    cases: [
      ...typesOf('sub', ['text', 'empty text']),
      ['sub absent', claim('sub', undefined)],
      ['sub in a list', claim('sub', ['user|1'])],
      ['sub by way of __proto__', text((json) => json.replace('"sub":"user|1"', '"__proto__":{"sub":"admin"}'))],
    ],
  },
  {
    attack: 'scope that is not a string',
    source: 'RFC 9068 §2.2.3, RFC 6749 §3.3',
    reason: 'malformed_scope',
    cases: [...typesOf('scope', ['text', 'empty text']), ['scope in a list', claim('scope', [ourScope])]],
  },
  {
    attack: 'token of another kind',
    source: 'OpenID Connect Core §2, Back-Channel Logout §2.4, RFC 8417 §2.2, RFC 8725 §3.11',
    reason: 'not_an_access_token',
    cases: [
      ...['at_hash', 'c_hash', 's_hash'].map(
        (name) => [`ID token with ${name}`, claim(name, 'bm90IGEgaGFzaA')] as const,
      ),
      ['ID token of Cognito', claim('token_use', 'id')],
      ['refresh token of Cognito', claim('token_use', 'refresh')],
      ...['ID', 'Refresh', 'Logout'].map((type) => [`typ ${type} of Keycloak`, claim('typ', type)] as const),
      ['logout token', claim('events', { 'http://schemas.openid.net/event/backchannel-logout': {} })],
      ['security event token', claim('events', { 'urn:example:event': {} })],
    ],
  },
  {
    attack: 'scope that is not granted',
    source: 'RFC 6749 §3.3, RFC 9068 §2.2.3',
    status: 403,
    reason: 'insufficient_scope',
    cases: [
      ...[
        ...words(`
          openid read:message read:messages2 xread:messages READ:MESSAGES read:* * read:messages,write:messages
          "read:messages"
        `),
        ...['', ' ', 'read:messages\twrite:messages', 'read:messages\u00a0x', 'read:messages\0'],
        ...['read:messages\n', 'read :messages'],
      ].map((scope) => [`scope ${JSON.stringify(scope)}`, scoped({ scope })] as const),
      ['scope absent', scoped({ scope: undefined })],
      ['permissions in its place', scoped({ scope: undefined, permissions: [ourScope] })],
      ['scp in its place', scoped({ scope: undefined, scp: [ourScope], scopes: ourScope })],
      [
        'scope by way of __proto__',
        ({ mint, provider, now }) => {
          const good = { iss: provider.issuer, aud: provider.audience, sub: 'a', iat: now(), exp: now() + 60 };
          const claimsBytes = `${JSON.stringify(good).slice(0, -1)},"__proto__":{"scope":"${ourScope}"}}`;
          return { path: '/api/private-scoped', headers: ['Authorization', `Bearer ${mint({ claimsBytes })}`] };
        },
      ],
    ],
  },
  {
    attack: 'bound token used as if it were free',
    source: 'RFC 7800 §3.1, RFC 9449 §7.1, §7.2',
    reason: 'malformed_cnf',
    cases: [
      ...typesOf('cnf', ['an empty object', 'an object']),
      ['cnf.jkt null', claim('cnf', { jkt: null })],
      ['cnf.jkt a list', claim('cnf', { jkt: [jkt] })],
      ['cnf.jkt too short', claim('cnf', { jkt: jkt.slice(1) })],
      ['cnf.jkt in hexadecimal', claim('cnf', { jkt: 'a'.repeat(64) })],
      ['cnf.jkt', claim('cnf', { jkt }), 'bound_token_as_bearer'],
      ['cnf.jkt and an unregistered member', claim('cnf', { jkt, other: 1 }), 'bound_token_as_bearer'],
      ['cnf: an empty object', claim('cnf', {}), 'unsupported_cnf'],
      ...['jwk', 'jwe', 'kid', 'jku', 'osc', 'x5t#S256'].flatMap(
        (member) =>
          [
            [`cnf.${member}`, claim('cnf', { [member]: 'x' }), 'unsupported_cnf'],
            [`cnf.${member} and jkt`, claim('cnf', { [member]: jkt, jkt }), 'unsupported_cnf'],
          ] as const,
      ),
      ...['unknown', 'JKT', 'kc-jkt-type'].map(
        (member) => [`only cnf.${member}`, claim('cnf', { [member]: jkt }), 'unsupported_cnf'] as const,
      ),
    ],
  },
  {
    attack: 'two readings of the same claims',
    source: 'RFC 7519 §4, RFC 8725 §2.4',
    reason: 'malformed_claims',
    cases: [
      ...['iss', 'aud', 'exp', 'nbf', 'iat', 'sub', 'scope', 'cnf'].map(
        (name) => [`${name} twice`, append(`"${name}":1,"${name}":2`)] as const,
      ),
      ['exp twice, the good one last', text((json) => `{"exp":1,${json.slice(1)}`)],
      ['iss twice, once escaped', text((json) => `{"\\u0069ss":"https://evil.example.test/",${json.slice(1)}`)],
      ['member twice, deep', append('"x":[{"y":{"z":1,"z":2}}]')],
      ['nested 21 deep', append(`"x":${'['.repeat(20)}${']'.repeat(20)}`)],
      ['nested 2000 deep', append(`"x":${'['.repeat(2000)}${']'.repeat(2000)}`)],
      ['byte order mark', text((json) => `\ufeff${json}`)],
      [
        'UTF-8 that is none',
        ({ mint }) => mint({ claimsBytes: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]) }),
      ],
      ['list of claims', text((json) => `[${json}]`)],
      ['text of claims', text((json) => JSON.stringify(json))],
      ['null', text(() => 'null')],
      ['form encoding', text(() => 'iss=x&aud=y')],
      ['empty', ({ mint }) => mint({ claimsBytes: '' })],
    ],
  },
]);
