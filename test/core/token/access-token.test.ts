import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { SignJWT } from 'jose';
import { describe, expect, it } from 'vitest';
import { AccessError, failures, type Reason } from '../../../src/core/failures.ts';
import type { JsonObject } from '../../../src/core/jose/json.ts';
import { writeCompact } from '../../../src/core/jose/sign.ts';
import type { KeySet } from '../../../src/core/keys/key-set.ts';
import { Refused } from '../../../src/core/refused.ts';
import { type AccessTokenRules, type IssuerRules, verifyAccessToken } from '../../../src/core/token/access-token.ts';
import { profileChecks, type RegisteredClaims } from '../../../src/core/token/claims.ts';
import { parseScope } from '../../../src/core/token/grants.ts';
import { takeRsaKeys } from '../../support/rsa-keys.ts';

const ours = takeRsaKeys();
const theirs = takeRsaKeys();
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const ed = generateKeyPairSync('ed25519');

const now = 1_800_000_000;
const issuer = 'https://idp.example.test/';
const audience = 'https://api.example.test/';

/** A key set that counts what it is asked. */
interface CountingKeySet extends KeySet {
  readonly asked: { find: number; has: number; usable: number };
}

function createKeySet(state: 'usable' | 'empty' = 'usable'): CountingKeySet {
  const keys = new Map<string, readonly [alg: string, key: KeyObject]>([
    ['rsa', ['RS256', ours.publicKey]],
    ['ec', ['ES256', ec.publicKey]],
    ['ed', ['EdDSA', ed.publicKey]],
    ['encryption', ['RSA-OAEP', ours.publicKey]],
  ]);
  const asked = { find: 0, has: 0, usable: 0 };
  return {
    asked,
    generation: 0,
    find(kid, alg) {
      asked.find++;
      const [fits, key] = keys.get(kid) ?? [];
      return state === 'usable' && fits === alg ? key : undefined;
    },
    has(kid) {
      asked.has++;
      return state === 'usable' && keys.has(kid);
    },
    usable() {
      asked.usable++;
      return state === 'usable';
    },
    refetch: () => undefined,
  };
}

/** What a token is minted from; each case changes one or two of these. */
interface Draft {
  header: Record<string, unknown>;
  claims: Record<string, unknown>;
  /** Bytes in place of the JSON of `header`. */
  headerBytes?: string | Buffer;
  /** Bytes in place of the JSON of `claims`. */
  claimsBytes?: string | Buffer;
  key: KeyObject;
  /** Last change to the finished text. */
  finish: (token: string) => string;
  keys: CountingKeySet;
}

function createDraft(): Draft {
  return {
    header: { alg: 'RS256', kid: 'rsa', typ: 'at+jwt' },
    claims: { iss: issuer, aud: audience, sub: 'user|1', iat: now, exp: now + 3600, scope: 'read:messages' },
    key: ours.privateKey,
    finish: (token) => token,
    keys: createKeySet(),
  };
}

function mint({ header, headerBytes, claims, claimsBytes, key, finish }: Draft): string {
  return finish(
    writeCompact({
      header: headerBytes ?? JSON.stringify(header),
      payload: claimsBytes ?? JSON.stringify(claims),
      sign: (input) => sign('sha256', input, key),
    }),
  );
}

function issuerFor(keys: KeySet, changes: Partial<IssuerRules> = {}): IssuerRules {
  return {
    issuer,
    keys,
    algorithms: new Set(['RS256']),
    audiences: new Set([audience]),
    expTolerance: 5,
    nbfTolerance: 5,
    subject: 'required',
    permissionsClaim: 'permissions',
    ...changes,
  };
}

function listOf(...rules: readonly IssuerRules[]): AccessTokenRules {
  return {
    issuers: new Map(rules.map((each) => [each.issuer, each])),
    algorithms: new Set(rules.flatMap(({ algorithms: names }) => [...names])),
    headers: new Map(),
  };
}

function rulesFor(keys: KeySet, changes?: Partial<IssuerRules>): AccessTokenRules {
  return listOf(issuerFor(keys, changes));
}

function judge(token: string, rules: AccessTokenRules): RegisteredClaims | Refused {
  const verified = verifyAccessToken(token, rules, now);
  return verified instanceof Refused ? verified : verified.claims;
}

/** The reason a draft is refused for; the claims where it is not. */
function judgeDraft(draft: Draft, rules?: Partial<IssuerRules>): Reason | RegisteredClaims {
  const result = judge(mint(draft), rulesFor(draft.keys, rules));
  return result instanceof Refused ? result.reason : result;
}

type Change = (draft: Draft) => void;

const header =
  (members: Readonly<Record<string, unknown>>): Change =>
  (draft) => {
    Object.assign(draft.header, members);
  };
const claims =
  (members: Readonly<Record<string, unknown>>): Change =>
  (draft) => {
    Object.assign(draft.claims, members);
  };
const claimsText =
  (change: (text: string) => string): Change =>
  (draft) => {
    draft.claimsBytes = change(JSON.stringify(draft.claims));
  };
const headerBytes =
  (bytes: string | Buffer): Change =>
  (draft) => {
    draft.headerBytes = bytes;
  };
const finish =
  (change: (token: string, parts: readonly [string, string, string]) => string): Change =>
  (draft) => {
    draft.finish = (token) => {
      const [first = '', second = '', third = ''] = token.split('.');
      return change(token, [first, second, third]);
    };
  };
const nest = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;
const badUtf8 = Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]);

const shape: readonly (readonly [string, Reason, Change])[] = [
  ['empty text', 'opaque_token', finish(() => '')],
  ['opaque token', 'opaque_token', finish(() => '8xLOxBtZp8')],
  ['JSON in place of a token', 'opaque_token', finish(() => '{"alg":"RS256"}')],
  ['one dot', 'malformed_token', finish((_token, [a, b]) => `${a}.${b}`)],
  ['four parts', 'malformed_token', finish((token) => `${token}.e30`)],
  ['six parts', 'malformed_token', finish((token) => `${token}.e30.e30.e30`)],
  ['dots alone', 'malformed_token', finish(() => '..')],
  ['no header', 'malformed_token', finish((_token, [, b, c]) => `.${b}.${c}`)],
  ['no claims', 'malformed_claims', finish((_token, [a, , c]) => `${a}..${c}`)],
  ['no signature', 'malformed_token', finish((_token, [a, b]) => `${a}.${b}.`)],
  ['five parts, as of a JWE', 'encrypted_token', finish((token) => `${token}.e30.e30`)],
  ['five empty parts', 'encrypted_token', finish(() => '....')],
  ['padding', 'malformed_encoding', finish((token) => `${token}=`)],
  ['a space before', 'malformed_encoding', finish((token) => ` ${token}`)],
  ['a space behind', 'malformed_encoding', finish((token) => `${token} `)],
  ['a line break inside', 'malformed_encoding', finish((_token, [a, b, c]) => `${a}.${b}\n.${c}`)],
  ['base64 in place of base64url', 'malformed_encoding', finish((_token, [a, b]) => `${a}.${b}.+/+/`)],
  ['a part of one character', 'malformed_encoding', finish((_token, [a, b]) => `${a}.${b}.A`)],
  ['stray bits', 'malformed_encoding', finish((_token, [a, b]) => `${a}.${b}.AB`)],
  ['a foreign character', 'malformed_encoding', finish((_token, [a, b, c]) => `${a}.${b}.é${c}`)],
  ['a header that is no JSON', 'malformed_header', headerBytes('{"alg":')],
  ['a header that is an array', 'malformed_header', headerBytes('[]')],
  ['a header that is null', 'malformed_header', headerBytes('null')],
  ['a header with a byte order mark', 'malformed_header', headerBytes('\ufeff{"alg":"RS256","kid":"rsa"}')],
  ['a header in bad UTF-8', 'malformed_header', headerBytes(badUtf8)],
  ['alg twice', 'malformed_header', headerBytes('{"alg":"none","alg":"RS256","kid":"rsa"}')],
  ['alg twice, once escaped', 'malformed_header', headerBytes('{"alg":"none","\\u0061lg":"RS256","kid":"rsa"}')],
  ['a header nested too deep', 'malformed_header', headerBytes(`{"alg":"RS256","kid":"rsa","x":${nest(20)}}`)],
  ['claims that are no JSON', 'malformed_claims', claimsText((text) => text.slice(0, -1))],
  ['claims that are a string', 'malformed_claims', claimsText((text) => JSON.stringify(text))],
  ['claims that are an array', 'malformed_claims', claimsText((text) => `[${text}]`)],
  ['iss twice', 'malformed_claims', claimsText((text) => `{"iss":"https://evil.example.test/",${text.slice(1)}`)],
  ['exp twice', 'malformed_claims', claimsText((text) => `${text.slice(0, -1)},"exp":9000000000}`)],
  ['a nested member twice', 'malformed_claims', claimsText((text) => `${text.slice(0, -1)},"x":[{"y":1,"y":2}]}`)],
  ['claims nested too deep', 'malformed_claims', claimsText((text) => `${text.slice(0, -1)},"x":${nest(20)}}`)],
  [
    'claims in bad UTF-8',
    'malformed_claims',
    (draft) => {
      draft.claimsBytes = badUtf8;
    },
  ],
];

/** A symmetric signature under the public key, which everybody knows. */
const confuse: Change = (draft) => {
  draft.header['alg'] = 'HS256';
  draft.finish = (token) => {
    const input = token.slice(0, token.lastIndexOf('.'));
    const secret = ours.publicKey.export({ type: 'spki', format: 'pem' });
    return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
  };
};

const joseHeader: readonly (readonly [string, Reason, Change])[] = [
  ['alg none', 'unsupported_alg', header({ alg: 'none' })],
  ['alg None', 'unsupported_alg', header({ alg: 'None' })],
  ['alg HS256 under the public key', 'unsupported_alg', confuse],
  ['alg in lower case', 'unsupported_alg', header({ alg: 'rs256' })],
  ['alg that is not allowed', 'unsupported_alg', header({ alg: 'RS512' })],
  ['alg absent', 'unsupported_alg', header({ alg: undefined })],
  ['alg null', 'unsupported_alg', header({ alg: null })],
  ['alg in an array', 'unsupported_alg', header({ alg: ['RS256'] })],
  ['alg of the prototype', 'unsupported_alg', header({ alg: 'toString' })],
  ['a proof', 'unsupported_typ', header({ typ: 'dpop+jwt' })],
  ['a logout token', 'unsupported_typ', header({ typ: 'logout+jwt' })],
  ['an empty typ', 'unsupported_typ', header({ typ: '' })],
  ['typ null', 'unsupported_typ', header({ typ: null })],
  ['typ in an array', 'unsupported_typ', header({ typ: ['JWT'] })],
  ['typ with a space', 'unsupported_typ', header({ typ: 'JWT ' })],
  ['typ application/jwt', 'unsupported_typ', header({ typ: 'application/jwt' })],
  ['crit', 'unsupported_header', header({ crit: ['exp'] })],
  ['crit empty', 'unsupported_header', header({ crit: [] })],
  ['crit null', 'unsupported_header', header({ crit: null })],
  ['b64 false', 'unsupported_header', header({ b64: false })],
  ['b64 true', 'unsupported_header', header({ b64: true })],
  ['zip', 'unsupported_header', header({ zip: 'DEF' })],
  ['kid empty', 'malformed_kid', header({ kid: '' })],
  ['kid null', 'malformed_kid', header({ kid: null })],
  ['kid a number', 'malformed_kid', header({ kid: 1 })],
  ['kid an array', 'malformed_kid', header({ kid: ['rsa'] })],
  ['kid of 257 characters', 'malformed_kid', header({ kid: 'k'.repeat(257) })],
];

const issuerAndKey: readonly (readonly [string, Reason, Change])[] = [
  ['another issuer', 'invalid_issuer', claims({ iss: 'https://evil.example.test/' })],
  ['issuer without its slash', 'invalid_issuer', claims({ iss: 'https://idp.example.test' })],
  ['issuer with two slashes', 'invalid_issuer', claims({ iss: 'https://idp.example.test//' })],
  ['issuer in upper case', 'invalid_issuer', claims({ iss: 'https://IDP.example.test/' })],
  ['issuer over http', 'invalid_issuer', claims({ iss: 'http://idp.example.test/' })],
  ['issuer with a port', 'invalid_issuer', claims({ iss: 'https://idp.example.test:443/' })],
  ['issuer as a prefix', 'invalid_issuer', claims({ iss: 'https://idp.example.test/.evil.test/' })],
  ['issuer in an array', 'invalid_issuer', claims({ iss: [issuer] })],
  ['issuer null', 'invalid_issuer', claims({ iss: null })],
  ['issuer empty', 'invalid_issuer', claims({ iss: '' })],
  ['no issuer', 'invalid_issuer', claims({ iss: undefined })],
  ['no kid', 'missing_kid', header({ kid: undefined })],
  [
    'no usable keys',
    'keys_unavailable',
    (draft) => {
      draft.keys = createKeySet('empty');
    },
  ],
  ['an unknown kid', 'unknown_kid', header({ kid: 'other' })],
  ['a kid of 256 characters', 'unknown_kid', header({ kid: 'k'.repeat(256) })],
  ['a kid that is a path', 'unknown_kid', header({ kid: '../../dev/null' })],
  ['a key of another algorithm', 'key_not_usable', header({ kid: 'ec' })],
  ['a key for encryption', 'key_not_usable', header({ kid: 'encryption' })],
  [
    "another provider's key",
    'invalid_signature',
    (draft) => {
      draft.key = theirs.privateKey;
    },
  ],
  [
    'a key of its own in the header',
    'invalid_signature',
    (draft) => {
      draft.key = theirs.privateKey;
      draft.header['jwk'] = theirs.publicKey.export({ format: 'jwk' });
    },
  ],
  [
    'claims exchanged after signing',
    'invalid_signature',
    finish((_token, [a, b, c]) => {
      const altered = Buffer.from(b, 'base64url').toString().replace('read:messages', 'admin:messages');
      return `${a}.${Buffer.from(altered).toString('base64url')}.${c}`;
    }),
  ],
  ['a signature cut short', 'invalid_signature', finish((_token, [a, b, c]) => `${a}.${b}.${c.slice(4)}`)],
  ['a signature of zeros', 'invalid_signature', finish((_token, [a, b]) => `${a}.${b}.${'A'.repeat(342)}`)],
  ['a signature of one byte', 'invalid_signature', finish((_token, [a, b]) => `${a}.${b}.AA`)],
];

const claimValues: readonly (readonly [string, Reason, Change])[] = [
  ['another audience', 'invalid_audience', claims({ aud: 'https://other.example.test/' })],
  ['no exp', 'missing_exp', claims({ exp: undefined })],
  ['exp a string', 'malformed_exp', claims({ exp: String(now + 60) })],
  ['exp 1e400', 'malformed_exp', claimsText((text) => text.replace(/"exp":\d+/, '"exp":1e400'))],
  ['exp passed', 'expired', claims({ exp: now - 5 })],
  ['nbf a string', 'malformed_nbf', claims({ nbf: 'now' })],
  ['nbf ahead', 'not_yet_valid', claims({ nbf: now + 6 })],
  ['no iat', 'missing_iat', claims({ iat: undefined })],
  ['iat negative', 'malformed_iat', claims({ iat: -1 })],
  ['iat ahead', 'issued_in_future', claims({ iat: now + 6 })],
  ['no sub', 'malformed_sub', claims({ sub: undefined })],
  ['scope an array', 'malformed_scope', claims({ scope: ['read:messages'] })],
  ['act a string', 'malformed_actor', claims({ act: 'agent-1' })],
  ['an ID token', 'not_an_access_token', claims({ at_hash: '77QmUPtjPfzWtF2AnpK9RQ' })],
];

const attacks = [...shape, ...joseHeader, ...issuerAndKey, ...claimValues];

describe.each([
  ['shape', shape],
  ['JOSE header', joseHeader],
  ['issuer and key', issuerAndKey],
  ['claims', claimValues],
])('%s', (_section, cases) => {
  it.each(cases)('%s → %s', (_name, reason, change) => {
    const draft = createDraft();
    change(draft);
    expect(judgeDraft(draft)).toBe(reason);
  });
});

describe('the table of attacks', () => {
  it('has every reason that the check of a token can give', () => {
    const reasons = Object.keys(failures);
    const judged = reasons.slice(reasons.indexOf('opaque_token'), reasons.indexOf('malformed_cnf'));
    // These rules accept every client and have no profile: profile.test.ts and issuer-options.test.ts test the others.
    const ofProfile = profileChecks.map((check) => check.reason).filter((each) => each !== 'malformed_sub');
    const others: readonly string[] = ['unaccepted_client', ...ofProfile];
    const given = judged.filter((reason) => !others.includes(reason));
    expect(new Set(attacks.map(([, reason]) => reason))).toEqual(new Set([...given, 'keys_unavailable']));
  });

  it('a client that is not accepted → unaccepted_client, after the audience and before the times', () => {
    const rules = { clientIds: new Set(['web']) };
    const draft = createDraft();
    Object.assign(draft.claims, { client_id: 'other', exp: 1 });
    expect(judgeDraft(draft, rules)).toBe('unaccepted_client');
    Object.assign(draft.claims, { aud: 'another' });
    expect(judgeDraft(draft, rules)).toBe('invalid_audience');
  });

  it('never lets a word of the token into a message', () => {
    for (const [, , change] of attacks) {
      const draft = createDraft();
      draft.claims['secret'] = 'payload-word';
      change(draft);
      const token = mint(draft);
      const error = judge(token, rulesFor(draft.keys));
      if (!(error instanceof Refused)) throw new TypeError('An attack was let through.');
      const told = `${error.message} ${JSON.stringify(error.context ?? {})}`;
      for (const word of ['payload-word', 'evil', ...token.split('.').filter((part) => part.length > 3)]) {
        expect(told).not.toContain(word);
      }
    }
  });
});

// One fault for each step, in the order of docs/behaviour.md.
const steps: readonly (readonly [Reason, Change])[] = [
  ['opaque_token', finish(() => 'opaque')],
  ['malformed_encoding', finish((token) => `${token}=`)],
  ['malformed_header', headerBytes('[]')],
  [
    'malformed_claims',
    (draft) => {
      draft.claimsBytes = '[]';
    },
  ],
  ['unsupported_alg', header({ alg: 'none' })],
  ['unsupported_typ', header({ typ: 'dpop+jwt' })],
  ['unsupported_header', header({ crit: ['exp'] })],
  ['malformed_kid', header({ kid: 1 })],
  ['invalid_issuer', claims({ iss: 'https://evil.example.test/' })],
  ['missing_kid', header({ kid: undefined })],
  [
    'keys_unavailable',
    (draft) => {
      draft.keys = createKeySet('empty');
    },
  ],
  ['unknown_kid', header({ kid: 'other' })],
  ['key_not_usable', header({ kid: 'ec' })],
  [
    'invalid_signature',
    (draft) => {
      draft.key = theirs.privateKey;
    },
  ],
  ['invalid_audience', claims({ aud: 'urn:other' })],
  ['missing_exp', claims({ exp: undefined })],
  ['expired', claims({ exp: now - 60 })],
  ['not_yet_valid', claims({ nbf: now + 60 })],
  ['missing_iat', claims({ iat: undefined })],
  ['issued_in_future', claims({ iat: now + 60 })],
  ['malformed_sub', claims({ sub: 1 })],
  ['malformed_scope', claims({ scope: 1 })],
  ['malformed_actor', claims({ act: 'agent-1' })],
  ['not_an_access_token', claims({ token_use: 'id' })],
];

describe('order', () => {
  it.each(steps.map(([reason, change], index) => [reason, change, index] as const))(
    'a token wrong in %s and in anything checked later → the earlier reason',
    (reason, change, index) => {
      for (const [later, changeLater] of steps.slice(index)) {
        const draft = createDraft();
        changeLater(draft);
        change(draft); // last, so that it holds where both change the same member
        expect(judgeDraft(draft), `${reason} before ${later}`).toBe(reason);
      }
    },
  );

  const keyless = steps.slice(
    0,
    steps.findIndex(([reason]) => reason === 'keys_unavailable'),
  );

  it.each(keyless)('%s → no look-up in the key set', (_reason, change) => {
    const draft = createDraft();
    change(draft);
    judgeDraft(draft);
    expect(draft.keys.asked).toEqual({ find: 0, has: 0, usable: 0 });
  });

  it.each(steps.slice(keyless.length))(
    '%s → one key is looked up, and others only after its signature has failed',
    (reason, change) => {
      const draft = createDraft();
      change(draft);
      judgeDraft(draft);
      // A key set that knows of no `nth` gives the first one again.
      expect(draft.keys.asked.find).toBe(reason === 'invalid_signature' ? 3 : 1);
    },
  );

  it('valid token → one look-up in the key set', () => {
    const draft = createDraft();
    expect(judgeDraft(draft)).toEqual(draft.claims);
    expect(draft.keys.asked).toEqual({ find: 1, has: 0, usable: 0 });
  });
});

describe('valid tokens', () => {
  it.each<[string, Change]>([
    ['as it is', () => undefined],
    ['no typ', header({ typ: undefined })],
    ['typ JWT', header({ typ: 'JWT' })],
    ['typ jwt', header({ typ: 'jwt' })],
    ['typ AT+JWT', header({ typ: 'AT+JWT' })],
    ['typ application/at+jwt', header({ typ: 'application/at+jwt' })],
    ['typ Application/AT+JWT', header({ typ: 'Application/AT+JWT' })],
    ['jwk of a stranger, ignored', header({ jwk: theirs.publicKey.export({ format: 'jwk' }) })],
    ['jku, x5u and x5c, ignored', header({ jku: 'http://127.0.0.1:1/', x5u: 'http://127.0.0.1:1/', x5c: ['AAAA'] })],
    ['unknown header parameters', header({ cty: 'x', 'https://example.test/': { a: [1] } })],
    ['several audiences', claims({ aud: ['urn:other', audience] })],
    ['no scope', claims({ scope: undefined })],
    ['claims of any depth up to 20', claimsText((text) => `${text.slice(0, -1)},"x":${nest(19)}}`)],
    ['white space in the JSON', claimsText((text) => ` ${text.replaceAll(',', ' ,\n')} `)],
    ['exp just within the tolerance', claims({ exp: now - 4 })],
    ['iat just within the tolerance', claims({ iat: now + 5 })],
  ])('%s → its claims', (_name, change) => {
    const draft = createDraft();
    change(draft);
    expect(judgeDraft(draft)).toMatchObject({ iss: issuer, sub: 'user|1' });
  });

  it.each<[string, string, KeyObject]>([
    ['RS256', 'rsa', ours.privateKey],
    ['ES256', 'ec', ec.privateKey],
    ['EdDSA', 'ed', ed.privateKey],
  ])('signed by jose with %s, once it is allowed → its claims', async (alg, kid, key) => {
    const token = await new SignJWT({ scope: 'read:messages' })
      .setProtectedHeader({ alg, kid, typ: 'at+jwt' })
      .setIssuer(issuer)
      .setAudience(audience)
      .setSubject('user|1')
      .setIssuedAt(now)
      .setExpirationTime(now + 60)
      .sign(key);
    const expected = { iss: issuer, aud: audience, sub: 'user|1', iat: now, exp: now + 60, scope: 'read:messages' };
    expect(judge(token, rulesFor(createKeySet(), { algorithms: new Set([alg]) }))).toEqual(expected);
    expect(judge(token, rulesFor(createKeySet(), { algorithms: new Set(['PS512']) }))).toMatchObject({
      reason: 'unsupported_alg',
    });
  });

  it('sub absent where it is optional → its claims', () => {
    const draft = createDraft();
    delete draft.claims['sub'];
    expect(judgeDraft(draft, { subject: 'optional' })).toEqual(draft.claims);
  });
});

describe('binding of a token', () => {
  const thumbprint = 'A'.repeat(43);
  const judgeBinding = (cnf: unknown, certificates?: 'on' | 'off') => {
    const draft = createDraft();
    Object.assign(draft.claims, { cnf });
    const rules = { ...rulesFor(draft.keys), ...(certificates !== undefined && { certificates }) };
    const judged = judge(mint(draft), rules);
    return judged instanceof Refused ? judged.reason : 'accepted';
  };

  it('a binding that is malformed or unknown → refused, not taken as a free token', () => {
    expect(judgeBinding({ jkt: 1 })).toBe('malformed_cnf');
    expect(judgeBinding({ kid: 'other' })).toBe('unsupported_cnf');
  });

  it('a client certificate → only where certificates are on, and they are off by default', () => {
    const cnf = { 'x5t#S256': thumbprint };
    expect(judgeBinding(cnf)).toBe('unsupported_cnf');
    expect(judgeBinding(cnf, 'off')).toBe('unsupported_cnf');
    expect(judgeBinding(cnf, 'on')).toBe('accepted');
  });
});

it('an algorithm that is not allowed → refused before the issuer is read', () => {
  const draft = createDraft();
  draft.header['alg'] = 'PS256';
  draft.claims['iss'] = 'https://stranger.example/';
  expect(judgeDraft(draft)).toBe('unsupported_alg');
});

describe('verified data', () => {
  it('is called with its scopes, its binding and the key', () => {
    const draft = createDraft();
    const jkt = 'A'.repeat(43);
    Object.assign(draft.claims, { cnf: { jkt } });
    const rules = issuerFor(draft.keys);
    expect(verifyAccessToken(mint(draft), listOf(rules), now)).toEqual({
      claims: draft.claims,
      scopes: parseScope('read:messages'),
      jkt,
      verifiedBy: { issuer: rules, kid: 'rsa', alg: 'RS256', key: ours.publicKey, generation: 0 },
    });
  });

  it('has a header that is kept by its text', () => {
    const headers = new Map<string, JsonObject>();
    const draft = createDraft();
    const [headerText = ''] = mint(draft).split('.');
    for (const _time of ['first', 'second']) {
      expect(judge(mint(draft), { ...rulesFor(draft.keys), headers })).toEqual(draft.claims);
      expect([...headers]).toEqual([[headerText, draft.header]]);
    }
  });

  it('signed by a stranger → its header is not kept', () => {
    const headers = new Map<string, JsonObject>();
    const draft = { ...createDraft(), key: theirs.privateKey };
    expect(judge(mint(draft), { ...rulesFor(draft.keys), headers })).toMatchObject({ reason: 'invalid_signature' });
    expect([...headers]).toEqual([]);
  });
});

describe('rules', () => {
  it.each(['HS256', 'none', 'RSA-OAEP'])('%s allowed by mistake → still unsupported_alg', (alg) => {
    const draft = createDraft();
    draft.header['alg'] = alg;
    expect(judgeDraft(draft, { algorithms: new Set([alg]) })).toBe('unsupported_alg');
  });

  it('no issuer is trusted → every token has an invalid issuer', () => {
    const rules = { ...listOf(), algorithms: new Set(['RS256']) };
    expect(judge(mint(createDraft()), rules)).toMatchObject({ reason: 'invalid_issuer' });
  });

  describe('two issuers', () => {
    const second = 'https://second.example.test/';

    it('each token is verified by the keys of its own issuer', () => {
      const draft = createDraft();
      const rules = listOf(issuerFor(draft.keys), issuerFor(createKeySet('empty'), { issuer: second }));
      expect(judge(mint(draft), rules)).toEqual(draft.claims);
      draft.claims['iss'] = second;
      expect(judge(mint(draft), rules)).toMatchObject({ reason: 'keys_unavailable', context: { issuer: second } });
      expect(draft.keys.asked.find).toBe(1);
    });

    it.each<[string, Partial<IssuerRules>, Change, Reason]>([
      ['audience', { audiences: new Set(['other']) }, claims({}), 'invalid_audience'],
      ['tolerance for exp', { expTolerance: 0 }, claims({ exp: now - 3 }), 'expired'],
      ['tolerance for nbf', { nbfTolerance: 0 }, claims({ nbf: now + 3 }), 'not_yet_valid'],
      ['subject', { subject: 'required' }, claims({ sub: undefined }), 'malformed_sub'],
      ['algorithms', { algorithms: new Set(['PS256']) }, claims({}), 'unsupported_alg'],
    ])('%s: what the first accepts, the second refuses by its own', (_name, changes, change, reason) => {
      const draft = createDraft();
      change(draft);
      const rules = listOf(
        issuerFor(draft.keys, { subject: 'optional' }),
        issuerFor(draft.keys, { subject: 'optional', issuer: second, ...changes }),
      );
      expect(judge(mint(draft), rules)).not.toBeInstanceOf(AccessError);
      draft.claims['iss'] = second;
      expect(judge(mint(draft), rules)).toMatchObject({ reason });
    });

    it('an alg that only the other allows → refused before a key look-up', () => {
      const draft = createDraft();
      const rules = listOf(
        issuerFor(draft.keys, { algorithms: new Set(['ES256']) }),
        issuerFor(draft.keys, { issuer: second }),
      );
      expect(judge(mint(draft), rules)).toMatchObject({ reason: 'unsupported_alg' });
      expect(draft.keys.asked.find).toBe(0);
    });
  });

  it.each<[Reason, Change, object | undefined]>([
    ['unsupported_header', header({ zip: 'DEF' }), { parameter: 'zip' }],
    ['unknown_kid', header({ kid: 'other' }), { issuer }],
    ['key_not_usable', header({ kid: 'ec' }), { issuer }],
    ['expired', claims({ exp: 1 }), undefined],
  ])('%s → tells the operator what helps, and nothing of the token', (reason, change, context) => {
    const draft = createDraft();
    change(draft);
    expect(judge(mint(draft), rulesFor(draft.keys))).toMatchObject({ reason, context });
  });
});
