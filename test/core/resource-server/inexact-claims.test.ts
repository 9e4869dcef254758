import { generateKeyPairSync } from 'node:crypto';
import { CompactEncrypt, decodeJwt } from 'jose';
import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import { createAssertionVerifier } from '../../../src/core/assertion/assertion-verifier.ts';
import { AccessError } from '../../../src/core/failures.ts';
import { createIntrospection } from '../../../src/core/introspection/introspection.ts';
import { signBytes, writeCompact } from '../../../src/core/jose/sign.ts';
import { createStaticKeySet } from '../../../src/core/keys/static-key-set.ts';
import type { Policy } from '../../../src/core/policy/policy.ts';
import type { Access } from '../../../src/core/resource-server/access.ts';
import { createResourceServer } from '../../../src/core/resource-server/resource-server.ts';
import { openBackchannelLogout } from '../../../src/core/revocation/logout/backchannel-logout.ts';
import { createRevocations } from '../../../src/core/revocation/revocations.ts';
import { explain } from '../../../src/explain/explain.ts';
import { importAssertionKeys } from '../../../src/gate/identity/assertion-keys.ts';
import { createAssertions } from '../../../src/gate/identity/assertions.ts';
import { createIdentityHeaders } from '../../../src/gate/identity/identity-headers.ts';
import { hashToken, makeProofKey, mintProof, thumbprintOf } from '../../support/proofs.ts';
import { takeRsaKeys } from '../../support/rsa-keys.ts';

const now = 1_800_000_000;
const issuer = 'https://idp.example.test/';
const audience = 'https://api.example.test/';
const url = `${audience}orders`;
const pair = takeRsaKeys();
const recipient = generateKeyPairSync('rsa', { modulusLength: 2048 });
const keys = createStaticKeySet({ keys: [{ ...pair.publicKey.export({ format: 'jwk' }), kid: 'k', alg: 'RS256' }] });
const revocations = createRevocations({ now: () => now });
const server = createResourceServer({
  issuers: [{ issuer, keys }],
  audience,
  revocations,
  decryption: { keys: [recipient.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()] },
  introspection: createIntrospection({
    endpoint: `${issuer}introspect`,
    issuer,
    clientId: 'api',
    clientSecret: 'secret',
    fetch: async (_url, { body }) => {
      const token = new URLSearchParams(String(body)).get('token') ?? '';
      const text = writeClaims(JSON.parse(Buffer.from(token, 'hex').toString()));
      return { status: 200, redirected: false, headers: new Headers(), body: new Blob([text]).stream() };
    },
  }),
  now: () => now,
});

type Texts = Readonly<Record<string, string>>;

/** Writes the usual claims, and members whose values are JSON. */
function writeClaims(members: Texts): string {
  const usual = { iss: issuer, aud: audience, sub: 'alice', client_id: 'app', iat: now, exp: now + 60, active: true };
  const texts = Object.entries({
    ...Object.fromEntries(Object.entries(usual).map(([k, e]) => [k, JSON.stringify(e)])),
    ...members,
  });
  return `{${texts.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`;
}

function mint(members: Texts, typ = 'at+jwt'): string {
  return writeCompact({
    header: JSON.stringify({ alg: 'RS256', kid: 'k', typ }),
    payload: writeClaims(members),
    sign: (input) => signBytes(input, { alg: 'RS256', privateKey: pair.privateKey }),
  });
}

const forms: Readonly<Record<string, (members: Texts) => string | Promise<string>>> = {
  'a JWT': (members) => mint(members),
  'an encrypted token': (members) =>
    new CompactEncrypt(Buffer.from(mint(members)))
      .setProtectedHeader({ alg: 'RSA-OAEP-256', enc: 'A256GCM', cty: 'JWT' })
      .encrypt(recipient.publicKey),
  'an introspected token': (members) => Buffer.from(JSON.stringify(members)).toString('hex'),
};

const requestOf = (token: string) => new Request(url, { headers: { authorization: `Bearer ${token}` } });

async function reasonOf(token: string, policy: Policy<unknown> = {}): Promise<string> {
  const judged = await server.judge(requestOf(token), policy);
  return judged instanceof AccessError ? judged.reason : 'accepted';
}

const big = '9007199254740993';
const claims = { tenant: big, list: `[1,${big},{"deep":1.0000000000000000001}]`, over: '1e400', exact: '1.50' };
const read = { tenant: big, list: [1, big, { deep: '1.0000000000000000001' }], over: '1e400', exact: 1.5 };

describe.each(Object.entries(forms))('%s with inexact numbers', (_, make) => {
  const authorize = async () => (await server.authorize(requestOf(await make(claims)))) as Access;

  it('access.claims → strings of their digits', async () => {
    expect((await authorize()).claims).toMatchObject(read);
    expect((await authorize()).claims).toMatchObject(read); // from a cache, if there is one
  });

  it('identity headers → the digits', async () => {
    const { values } = createIdentityHeaders({ a: 'tenant', b: 'list', c: 'over', d: 'exact' }).write(
      await authorize(),
    );
    expect(values).toEqual([big, `[1,"${big}",{"deep":"1.0000000000000000001"}]`, '1e400', '1.5']);
  });

  it('the assertion, and what its verifier returns → the digits', async () => {
    const privateKey = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    const { signer, jwks } = importAssertionKeys({ signing: { setting: 'K', pem: privateKey }, published: [] });
    const options = { lifetime: 60, claims: Object.keys(claims), now: () => now };
    const { write } = createAssertions({ signer: signer as never, issuer: 'https://gate.test/', ...options });
    const value = String(write(await authorize(), { id: 'r', assertion: { audience: 'u', isBound: false } })?.value);
    expect(decodeJwt(value)).toMatchObject(read);
    const verifier = { issuer: 'https://gate.test/', audience: 'u', jwks: JSON.parse(jwks), now: () => now };
    expect(await createAssertionVerifier(verifier).verify(value)).toMatchObject(read);
  });

  it.each<[string, Policy<unknown>, string]>([
    ['a schema of 2^53', { claims: v.looseObject({ tenant: v.literal(2 ** 53) }) }, 'unaccepted_claims'],
    ['a schema of the digits', { claims: v.looseObject({ tenant: v.literal(big) }) }, 'accepted'],
  ])('%s → %4$s', async (_name, policy, outcome) => expect(await reasonOf(await make(claims), policy)).toBe(outcome));

  it.each(['exp', 'iat', 'nbf'])('%s with zeros at the end, or an overflow → malformed', async (name) => {
    for (const text of [`${now - 1}.00000000000000`, '1e400', '9007199254740993', '1e-400']) {
      expect(await reasonOf(await make({ [name]: text }))).toBe(`malformed_${name}`);
    }
    expect(await reasonOf(await make({ iat: '1.8e9', nbf: '1800000000.0', exp: `${now + 5}0e-1` }))).toBe('accepted');
  });

  it('auth_time that is inexact → a step-up', async () => {
    const policy = { maxAge: 60 };
    expect(await reasonOf(await make({ auth_time: `${now}` }), policy)).toBe('accepted');
    expect(await reasonOf(await make({ auth_time: `${now}.0000000` }), policy)).toBe('accepted');
    expect(await reasonOf(await make({ auth_time: `${now}.00000000` }), policy)).not.toBe('accepted');
  });
});

it('explain of a JWT → the digits', async () => {
  const { shown } = await explain(server, requestOf(mint(claims)), {}, {}, { show: ['tenant', 'list'] });
  expect(shown?.map(({ value }) => value)).toEqual([expect.stringContaining(big), expect.stringContaining(big)]);
});

it('a proof with an inexact iat → malformed_proof_claims; an exact one → accepted', async () => {
  const key = makeProofKey();
  const token = mint({ cnf: JSON.stringify({ jkt: thumbprintOf(key.jwk) }) });
  const prove = (iat: string, jti: string): string => {
    const texts = `"jti":"${jti}","htm":"GET","htu":"${url}","ath":"${hashToken(token)}","iat":${iat}`;
    return mintProof({}, { key, claimsText: `{${texts}}` });
  };
  const judge = async (iat: string): Promise<string> => {
    const headers = { authorization: `DPoP ${token}`, dpop: prove(iat, iat) };
    const judged = await open.judge(new Request(url, { headers }));
    return judged instanceof AccessError ? judged.reason : 'accepted';
  };
  const open = createResourceServer({
    ...{ issuers: [{ issuer, keys }], audience, now: () => now, dpop: { replay: 'off' } },
  });
  expect(await judge(`${now}.0`)).toBe('accepted');
  expect(await judge(`${now}.00000000`)).toBe('malformed_proof_claims');
});

it('a logout token: sid that is a number of many digits → ends this session only; an inexact iat → refused', async () => {
  const { respond } = openBackchannelLogout(server, { clientIds: ['app'] });
  const event = '{"http://schemas.openid.net/event/backchannel-logout":{}}';
  const post = (members: Texts) => {
    const texts = { aud: '"app"', jti: '"1"', sid: `${big}0`, sub: '"bob"', events: event, ...members };
    const body = new URLSearchParams({ logout_token: mint(texts, 'logout+jwt') }).toString();
    const headers = new Headers({ 'content-type': 'application/x-www-form-urlencoded' });
    const request = { method: 'POST', url: `${audience}backchannel-logout`, headers };
    return respond({ request, connection: {}, readBody: async () => body }, '/backchannel-logout');
  };
  expect((await post({ iat: `${now}.00000000` })).status).toBe(400);
  expect((await post({})).status).toBe(200);
  expect(await reasonOf(mint({ sid: `${big}0` }))).toBe('revoked_token');
  expect(await reasonOf(mint({ sid: `${big}1` }))).toBe('accepted');
});
