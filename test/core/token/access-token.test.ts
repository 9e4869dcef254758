import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { SignJWT } from 'jose';
import { describe, expect, it } from 'vitest';
import { AccessError, type Reason } from '../../../src/core/failures.ts';
import type { JsonObject } from '../../../src/core/jose/json.ts';
import { writeCompact } from '../../../src/core/jose/sign.ts';
import type { KeySet } from '../../../src/core/keys/key-set.ts';
import { Refused } from '../../../src/core/refused.ts';
import { type AccessTokenRules, type IssuerRules, verifyAccessToken } from '../../../src/core/token/access-token.ts';
import type { RegisteredClaims } from '../../../src/core/token/claims.ts';
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
type CountingKeySet = ReturnType<typeof createKeySet>;

function createKeySet(state: 'usable' | 'empty' = 'usable') {
  const keys = new Map<string, readonly [alg: string, key: KeyObject]>([
    ['rsa', ['RS256', ours.publicKey]],
    ['ec', ['ES256', ec.publicKey]],
    ['ed', ['EdDSA', ed.publicKey]],
    ['encryption', ['RSA-OAEP', ours.publicKey]],
  ]);
  const asked = { find: 0, has: 0, usable: 0 };
  const note = (name: keyof typeof asked): boolean => ++asked[name] > 0 && state === 'usable';
  const set: KeySet = {
    generation: 0,
    find(kid, alg) {
      const [fits, key] = keys.get(kid) ?? [];
      return note('find') && fits === alg ? key : undefined;
    },
    has: (kid) => note('has') && keys.has(kid),
    usable: () => note('usable'),
    refetch: () => undefined,
  };
  return { ...set, asked };
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

type Change = (draft: Draft) => unknown;
type Members = Readonly<Record<string, unknown>>;

const set =
  (members: Partial<Draft>): Change =>
  (draft) =>
    Object.assign(draft, members);
const header =
  (members: Members): Change =>
  (draft) =>
    Object.assign(draft.header, members);
const claims =
  (members: Members): Change =>
  (draft) =>
    Object.assign(draft.claims, members);
const claimsText =
  (change: (text: string) => string): Change =>
  (draft) =>
    Object.assign(draft, { claimsBytes: change(JSON.stringify(draft.claims)) });
/** A draft with these changes. */
function draftOf(...changes: readonly Change[]): Draft {
  const draft = createDraft();
  for (const change of changes) change(draft);
  return draft;
}

const nest = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;

// One fault for each step, in the order of docs/behaviour.md.
const steps: readonly (readonly [Reason, Change])[] = [
  ['opaque_token', set({ finish: () => 'opaque' })],
  ['malformed_encoding', set({ finish: (token) => `${token}=` })],
  ['malformed_header', set({ headerBytes: '[]' })],
  ['malformed_claims', set({ claimsBytes: '[]' })],
  ['unsupported_alg', header({ alg: 'none' })],
  ['unsupported_typ', header({ typ: 'dpop+jwt' })],
  ['unsupported_header', header({ crit: ['exp'] })],
  ['malformed_kid', header({ kid: 1 })],
  ['invalid_issuer', claims({ iss: 'https://evil.example.test/' })],
  ['missing_kid', header({ kid: undefined })],
  ['keys_unavailable', (draft) => Object.assign(draft, { keys: createKeySet('empty') })],
  ['unknown_kid', header({ kid: 'other' })],
  ['key_not_usable', header({ kid: 'ec' })],
  ['invalid_signature', set({ key: theirs.privateKey })],
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
  it('a client that is not accepted → unaccepted_client, after the audience and before the times', () => {
    const rules = { clientIds: new Set(['web']) };
    const draft = draftOf(claims({ client_id: 'other', exp: 1 }));
    expect(judgeDraft(draft, rules)).toBe('unaccepted_client');
    draft.claims['aud'] = 'another';
    expect(judgeDraft(draft, rules)).toBe('invalid_audience');
  });

  it('never lets a word of the token into a message', () => {
    for (const [, change] of steps) {
      const draft = draftOf(claims({ secret: 'payload-word' }), change);
      const token = mint(draft);
      const error = judge(token, rulesFor(draft.keys));
      if (!(error instanceof Refused)) throw new TypeError('An attack was let through.');
      const told = `${error.message} ${JSON.stringify(error.context ?? {})}`;
      for (const word of ['payload-word', 'evil', ...token.split('.').filter((part) => part.length > 3)]) {
        expect(told).not.toContain(word);
      }
    }
  });

  it.each(steps.map(([reason, change], index) => [reason, change, index] as const))(
    'a token wrong in %s and in anything checked later → the earlier reason',
    (reason, change, index) => {
      for (const [later, changeLater] of steps.slice(index)) {
        const draft = draftOf(changeLater, change); // the last holds where both change the same member
        expect(judgeDraft(draft), `${reason} before ${later}`).toBe(reason);
      }
    },
  );

  const keyless = steps.slice(
    0,
    steps.findIndex(([reason]) => reason === 'keys_unavailable'),
  );

  it.each(keyless)('%s → no look-up in the key set', (_reason, change) => {
    const draft = draftOf(change);
    judgeDraft(draft);
    expect(draft.keys.asked).toEqual({ find: 0, has: 0, usable: 0 });
  });

  it.each(steps.slice(keyless.length))(
    '%s → one key is looked up, and others only after its signature has failed',
    (reason, change) => {
      const draft = draftOf(change);
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
    const draft = draftOf(change);
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
    const { sub: _, ...expected } = createDraft().claims;
    expect(judgeDraft(draftOf(claims({ sub: undefined })), { subject: 'optional' })).toEqual(expected);
  });
});

describe('binding of a token', () => {
  const thumbprint = 'A'.repeat(43);
  const judgeBinding = (cnf: unknown, certificates?: 'on' | 'off') => {
    const draft = draftOf(claims({ cnf }));
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
  const draft = draftOf(header({ alg: 'PS256' }), claims({ iss: 'https://stranger.example/' }));
  expect(judgeDraft(draft)).toBe('unsupported_alg');
});

describe('verified data', () => {
  it('is called with its scopes, its binding and the key', () => {
    const jkt = 'A'.repeat(43);
    const draft = draftOf(claims({ cnf: { jkt } }));
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
    expect(judgeDraft(draftOf(header({ alg })), { algorithms: new Set([alg]) })).toBe('unsupported_alg');
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
      const draft = draftOf(change);
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
    const draft = draftOf(change);
    expect(judge(mint(draft), rulesFor(draft.keys))).toMatchObject({ reason, context });
  });
});
