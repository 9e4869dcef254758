import { describe, expect, it } from 'vitest';
import type { Reason } from '../../../src/core/failures.ts';
import { type JsonObject, parseJsonObject } from '../../../src/core/jose/json.ts';
import { type ClaimRules, claimChecks, timeChecks } from '../../../src/core/token/claims.ts';
import { words } from '../../support/words.ts';

const now = 1_800_000_000;
const audience = 'https://api.example.test/';
const rules: ClaimRules = { audiences: new Set([audience]), expTolerance: 0, nbfTolerance: 0, subject: 'required' };
const good = { aud: JSON.stringify(audience), exp: `${now + 60}`, iat: `${now}`, sub: '"user|1"' };

type Outcome = Reason | 'accepted';

/** The first check that fails; `members` are laid over good claims as JSON text, `undefined` leaves one out. */
function judge(members: Readonly<Record<string, string | undefined>>, changes: Partial<ClaimRules> = {}): Outcome {
  const texts = Object.entries({ ...good, ...members }).filter(([, text]) => text !== undefined);
  const claims = parseJsonObject(Buffer.from(`{${texts.map(([name, text]) => `"${name}":${text}`).join()}}`));
  if (claims === undefined) throw new TypeError('The claims of this case are not JSON.');
  return judgeClaims(claims, { ...rules, ...changes });
}

function judgeClaims(claims: JsonObject, held: ClaimRules): Outcome {
  return claimChecks.find(({ passes }) => !passes({ claims, rules: held, now }))?.reason ?? 'accepted';
}

describe('the client, and tokens without recipients', () => {
  const ofClient: Partial<ClaimRules> = { audiences: new Set(), clientIds: new Set(['web']) };
  const unchecked: Partial<ClaimRules> = { audiences: new Set(), isUnchecked: true };
  const cid = { ...ofClient, clientIdClaim: 'cid' };

  it.each<[string, Partial<ClaimRules>, Readonly<Record<string, string>>, Outcome]>([
    ['client_id', ofClient, { client_id: '"web"' }, 'accepted'],
    ['azp', ofClient, { azp: '"web"' }, 'accepted'],
    ['clientIdClaim cid', cid, { cid: '"web"' }, 'accepted'],
    ['clientIdClaim cid, other client', cid, { cid: '"app"' }, 'unaccepted_client'],
    ['clientIdClaim cid, only client_id', cid, { client_id: '"web"' }, 'unaccepted_client'],
    ['clientIdClaim cid, only azp', cid, { azp: '"web"' }, 'unaccepted_client'],
    ['clientIdClaim cid, a list', cid, { cid: '["web"]' }, 'unaccepted_client'],
    ['clientIdClaim of every object', { ...ofClient, clientIdClaim: 'constructor' }, {}, 'unaccepted_client'],
    ['unchecked, neither aud nor client', unchecked, {}, 'accepted'],
    ['unchecked, azp with an origin', unchecked, { azp: '"https://app.example"' }, 'accepted'],
    ['unchecked, aud', unchecked, { aud: '"unchecked"' }, 'invalid_audience'],
    ['unchecked, empty aud', unchecked, { aud: '[]' }, 'invalid_audience'],
    ['unchecked, aud null', unchecked, { aud: 'null' }, 'invalid_audience'],
    ['unchecked, client_id', unchecked, { client_id: '"web"' }, 'unaccepted_client'],
    ['unchecked, client in cid', { ...unchecked, clientIdClaim: 'cid' }, { cid: '"web"' }, 'unaccepted_client'],
  ])('%s → %4$s', (_name, changes, members, outcome) =>
    expect(judge({ aud: undefined, ...members }, changes)).toBe(outcome),
  );
});

describe('aud', () => {
  const a = JSON.stringify(audience);

  it.each<[string, Outcome]>([
    [a, 'accepted'],
    [`[${a}]`, 'accepted'],
    [`[${a},"https://other.example.test/"]`, 'accepted'],
    ['[""]', 'invalid_audience'],
    [`[1,${a}]`, 'invalid_audience'],
    ['"https://api.example.test//"', 'invalid_audience'],
  ])('%s → %s', (aud, outcome) => expect(judge({ aud })).toBe(outcome));

  it('absent → invalid_audience', () => expect(judge({ aud: undefined })).toBe('invalid_audience'));

  it('several audiences are ours → any one of them is enough', () => {
    const audiences = new Set([audience, 'urn:second']);
    expect(judge({ aud: '"urn:second"' }, { audiences })).toBe('accepted');
    expect(judge({ aud: '["urn:third","urn:second"]' }, { audiences })).toBe('accepted');
    expect(judge({ aud: '"urn:third"' }, { audiences })).toBe('invalid_audience');
  });
});

// Among them a little more than 10^11, milliseconds, and 2^53 + 2.
const malformedTimes = words(`
  null true false "" "NaN" "1800000060" "Infinity" [] [1800000060] {} -1 -1e-9 -1e400 1e400 100000000000.001
  1800000000000 9007199254740994 1e300
`);

describe('exp', () => {
  it.each(malformedTimes)('%s → malformed_exp', (exp) => expect(judge({ exp })).toBe('malformed_exp'));

  it('absent → missing_exp', () => expect(judge({ exp: undefined })).toBe('missing_exp'));

  it.each<[string, number, Outcome]>([
    [`${now + 1}`, 0, 'accepted'],
    [`${now}.001`, 0, 'accepted'],
    [`${now}`, 0, 'expired'],
    [`${now - 1}`, 0, 'expired'],
    ['0', 60, 'expired'],
    ['100000000000', 0, 'accepted'], // 10^11
    [`${now}`, 5, 'accepted'],
    [`${now - 4}`, 5, 'accepted'],
    [`${now - 5}`, 5, 'expired'],
  ])('%s with a tolerance of %i s → %s', (exp, expTolerance, outcome) =>
    expect(judge({ exp }, { expTolerance })).toBe(outcome),
  );

  it('the tolerance of nbf does not count for exp', () =>
    expect(judge({ exp: `${now}` }, { nbfTolerance: 300 })).toBe('expired'));
});

describe.each([
  ['nbf', 'malformed_nbf', 'not_yet_valid', 'accepted'],
  ['iat', 'malformed_iat', 'issued_in_future', 'missing_iat'],
] as const)('%s', (name, malformed, future, absent) => {
  it.each(malformedTimes)(`%s → ${malformed}`, (text) => expect(judge({ [name]: text })).toBe(malformed));

  it(`absent → ${absent}`, () => expect(judge({ [name]: undefined })).toBe(absent));

  it.each<[string, number, Outcome]>([
    [`${now}`, 0, 'accepted'],
    [`${now}.001`, 0, future],
    [`${now + 1}`, 0, future],
    ['100000000000', 0, future], // 10^11
    [`${now + 5}`, 5, 'accepted'],
    [`${now + 5}.001`, 5, future],
    [`${now + 300}`, 300, 'accepted'],
    [`${now + 301}`, 300, future],
  ])(`%s with a tolerance of %i s → %s`, (text, nbfTolerance, outcome) =>
    expect(judge({ [name]: text }, { nbfTolerance })).toBe(outcome),
  );

  it('the tolerance of exp does not count here', () =>
    expect(judge({ [name]: `${now + 1}` }, { expTolerance: 60 })).toBe(future));
});

it.each([Number.NaN, Number.POSITIVE_INFINITY, 1n])(
  'numbers that JSON cannot write: %s as a time → malformed',
  (value) => {
    const claims = { aud: audience, exp: now + 60, iat: now, sub: 'user|1' };
    expect(judgeClaims(claims, rules)).toBe('accepted');
    expect(judgeClaims({ ...claims, exp: value }, rules)).toBe('malformed_exp');
    expect(judgeClaims({ ...claims, nbf: value }, rules)).toBe('malformed_nbf');
    expect(judgeClaims({ ...claims, iat: value }, rules)).toBe('malformed_iat');
  },
);

it.each<[string | undefined, ClaimRules['subject'], Outcome]>([
  ['"user|1"', 'required', 'accepted'],
  ['"user|1"', 'optional', 'accepted'],
  ['""', 'required', 'malformed_sub'],
  ['""', 'optional', 'malformed_sub'],
  [undefined, 'required', 'malformed_sub'],
  [undefined, 'optional', 'accepted'],
  ['null', 'required', 'malformed_sub'],
  ['null', 'optional', 'accepted'],
  ['{}', 'optional', 'malformed_sub'],
])('sub: %s, %s → %s', (sub, subject, outcome) => expect(judge({ sub }, { subject })).toBe(outcome));

it.each<[string | undefined, Outcome]>([
  [undefined, 'accepted'],
  ['"read:messages"', 'accepted'],
  ['""', 'accepted'],
  ['null', 'malformed_scope'],
  ['[]', 'malformed_scope'],
])('scope: %s → %s', (scope, outcome) => expect(judge({ scope })).toBe(outcome));

describe('client_id and azp, compared with clientIds', () => {
  const clientIds = new Set(['web', 'cli']);

  it.each<[string, Readonly<Record<string, string>>, Outcome]>([
    ['client_id is one', { client_id: '"web"' }, 'accepted'],
    ['azp is one, and there is no client_id', { azp: '"cli"' }, 'accepted'],
    ['client_id is one, azp another', { client_id: '"web"', azp: '"other"' }, 'accepted'],
    ['azp is one, client_id another', { client_id: '"other"', azp: '"web"' }, 'unaccepted_client'],
    ['azp is one, client_id null', { client_id: 'null', azp: '"web"' }, 'unaccepted_client'],
    ['azp is one, client_id empty', { client_id: '""', azp: '"web"' }, 'unaccepted_client'],
    ['neither', {}, 'unaccepted_client'],
    ['another', { client_id: '"other"' }, 'unaccepted_client'],
    ['a list in azp', { azp: '["web"]' }, 'unaccepted_client'],
    ['cid, which is no name for it', { cid: '"web"' }, 'unaccepted_client'],
    ['another audience as well', { aud: '"other"', client_id: '"web"' }, 'invalid_audience'],
  ])('%s → %s', (_name, members, outcome) => expect(judge(members, { clientIds })).toBe(outcome));

  it.each<[string, string | undefined, Outcome]>([
    ['no aud', undefined, 'accepted'],
    ['an aud', JSON.stringify(audience), 'invalid_audience'],
    ['the client as aud, as in an ID token', '"web"', 'invalid_audience'],
    ['an empty list', '[]', 'invalid_audience'],
    ['null', 'null', 'invalid_audience'],
    ['an empty text', '""', 'invalid_audience'],
  ])('instead of an audience, %s → %s', (_name, aud, outcome) =>
    expect(judge({ aud, client_id: '"web"' }, { clientIds, audiences: new Set() })).toBe(outcome),
  );

  it('neither audience nor clientIds → every token is refused', () => {
    for (const aud of [undefined, '""', '[]']) {
      expect(judge({ aud }, { audiences: new Set() })).toBe('invalid_audience');
    }
  });
});

it.each<[string, string, Readonly<Record<string, string>>, Outcome]>([
  ['scp', 'absent', {}, 'accepted'],
  ['scp', 'a text', { scp: '"a b"' }, 'accepted'],
  ['scp', 'a list of texts', { scp: '["a","b"]' }, 'accepted'],
  ['scp', 'an empty list', { scp: '[]' }, 'accepted'],
  ['scp', 'a number', { scp: '1' }, 'malformed_scope'],
  ['scp', 'null', { scp: 'null' }, 'malformed_scope'],
  ['scp', 'an object', { scp: '{}' }, 'malformed_scope'],
  ['scp', 'a list with a number', { scp: '["a",1]' }, 'malformed_scope'],
  ['scp', 'a list in a list', { scp: '[["a"]]' }, 'malformed_scope'],
  ['scp', 'a scope that is not looked at', { scp: '"a"', scope: '1' }, 'accepted'],
  ['scope', 'a list, which it may be by this name', { scope: '["a"]' }, 'accepted'],
  ['constructor', 'what every object inherits', {}, 'accepted'],
])('the claim that replaces scope: %s, %s → %s %s', (scopeClaim, _name, members, outcome) =>
  expect(judge(members, { scopeClaim })).toBe(outcome),
);

describe('a token that says that it is something else', () => {
  const logout = '{"http://schemas.openid.net/event/backchannel-logout":{}}';

  it.each<[string, string]>([
    ['token_use', '"access"'],
    ['token_use', '["id"]'],
    ['typ', '"Bearer"'],
    ['typ', '"at+jwt"'],
    ['typ', '"id"'],
    ['nonce', '"n-0S6_WzA2Mj"'],
    ['events', '{}'],
    ['events', '["http://schemas.openid.net/event/backchannel-logout"]'],
    ['events', '{"opened":{},"urn:example:event":{}}'],
    ['events', 'null'],
    ['events', '3'],
  ])('%s %s → accepted', (name, text) => expect(judge({ [name]: text })).toBe('accepted'));

  it('is read last', () => expect(judge({ events: logout, scope: '1' })).toBe('malformed_scope'));
});

describe('checks as data', () => {
  it('come in the order of docs/behaviour.md, each reason once', () => {
    expect(claimChecks.map(({ group, reason }) => [group, reason])).toEqual([
      ['aud', 'invalid_audience'],
      ['client', 'unaccepted_client'],
      ['exp', 'missing_exp'],
      ['exp', 'malformed_exp'],
      ['exp', 'expired'],
      ['nbf', 'malformed_nbf'],
      ['nbf', 'not_yet_valid'],
      ['iat', 'missing_iat'],
      ['iat', 'malformed_iat'],
      ['iat', 'issued_in_future'],
      ['sub', 'malformed_sub'],
      ['scope', 'malformed_scope'],
      ['actor', 'malformed_actor'],
      ['kind', 'not_an_access_token'],
    ]);
  });

  it('time-dependent checks are a part of them', () => {
    expect(timeChecks.map(({ reason }) => reason)).toEqual(['expired', 'not_yet_valid', 'issued_in_future']);
    for (const each of timeChecks) expect(claimChecks).toContain(each);
  });

  it('each runs alone: on empty claims every check returns, and no missing time passes as valid', () => {
    const failed = claimChecks.filter(({ passes }) => !passes({ claims: {}, rules, now })).map(({ reason }) => reason);
    expect(failed).toEqual(
      words(`
      invalid_audience missing_exp malformed_exp expired missing_iat malformed_iat issued_in_future malformed_sub
    `),
    );
  });

  it('a malformed nbf → fails the check of its value as well', () => {
    const facts = { claims: { nbf: '0' }, rules, now };
    const failed = claimChecks.filter(({ group, passes }) => group === 'nbf' && !passes(facts));
    expect(failed.map(({ reason }) => reason)).toEqual(['malformed_nbf', 'not_yet_valid']);
  });

  const ahead = Number.POSITIVE_INFINITY;
  it.each<[Reason, JsonObject, object]>([
    ['invalid_audience', { aud: 'other' }, { expected: rules.audiences, received: 'other' }],
    ['unaccepted_client', { client_id: 'a secret' }, { expected: new Set(['web']) }],
    ['expired', { exp: now - 1 }, { received: now - 1, time: { now, past: 0, ahead } }],
    ['not_yet_valid', { nbf: now + 9 }, { received: now + 9, time: { now, past: ahead, ahead: 0 } }],
    ['issued_in_future', { iat: now + 9 }, { received: now + 9, time: { now, past: ahead, ahead: 0 } }],
  ])('%s → the log has the expected and the actual value', (reason, claims, told) => {
    const facts = { claims, rules: { ...rules, clientIds: new Set(['web']) }, now };
    const failed = claimChecks.filter((check) => check.reason === reason && !check.passes(facts));
    expect(failed.map(({ compare }) => compare?.(facts))).toEqual([told]);
  });
});
