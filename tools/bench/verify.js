// The cost of validating a token, compared with its one signature check: interleaved rounds, medians, ratios.
import { constants, createPublicKey, randomUUID, verify } from 'node:crypto';
import { createMemoryReplayStore, createResourceServer } from '../../dist/index.js';
import { createTestIssuer } from '../../dist/testing/index.js';
import { median } from '../shared/statistics.js';

const issuer = 'https://idp.example/';
const audience = 'https://api.example/';
const url = 'https://api.example/messages';

const provider = createTestIssuer({ issuer, audience });
const client = provider.dpopClient();
const [tokenJwk] = provider.jwks.keys;
const tokenKey = createPublicKey({ key: tokenJwk, format: 'jwk' });
const proofKey = createPublicKey({ key: client.jwk, format: 'jwk' });

const mint = (claims) =>
  provider.token({
    sub: randomUUID(),
    client_id: randomUUID(),
    scope: 'openid profile read:messages write:messages',
    ...claims,
  });
const prove = (token) => client.proof({ url, token });

const request = (headers) => ({ method: 'GET', url, headers: { get: (name) => headers[name.toLowerCase()] ?? null } });
const parts = (jws) => [
  Buffer.from(jws.slice(0, jws.lastIndexOf('.'))),
  Buffer.from(jws.slice(jws.lastIndexOf('.') + 1), 'base64url'),
];

const each = async (items, act) => {
  for (const item of items) await act(item);
};

/** Prints, for each case, its cost as a multiple of its floor. */
export async function bench({ quick }) {
  const size = quick ? 2000 : 10_000;
  const rounds = quick ? 5 : 15;
  const keys = { generation: 0, find: () => tokenKey, has: () => true, usable: () => true, refetch: () => undefined };
  // Each token is new to this one in every round; the other keeps what it has verified.
  const forgetful = createResourceServer({ issuers: [{ issuer, keys }], audience, tokenCache: 'off' });
  // The proof is validated in the second of its creation.
  const dpop = { replay: createMemoryReplayStore({ since: 0 }) };
  const server = createResourceServer({ issuers: [{ issuer, keys }], audience, dpop });
  const policy = { scopes: ['read:messages'] };
  const bearer = Array.from({ length: size }, () => mint({}));
  const bound = mint({ cnf: { jkt: client.jkt } });
  let proofs = [];
  const rsa = bearer.map(parts);
  const rsaKey = { key: tokenKey, padding: constants.RSA_PKCS1_PADDING };
  const ecKey = /** @type {const} */ ({ key: proofKey, dsaEncoding: 'ieee-p1363' });
  let ec = [];

  const cases = {
    'floor: one RS256 verify': () => each(rsa, ([input, signature]) => verify('sha256', input, rsaKey, signature)),
    'Bearer, every token new': () =>
      each(bearer, (token) => forgetful.judge(request({ authorization: `Bearer ${token}` }), policy)),
    'floor: one ES256 verify': () => each(ec, ([input, signature]) => verify('sha256', input, ecKey, signature)),
    'DPoP, one key, every proof new': () =>
      each(proofs, (dpop) => server.judge(request({ authorization: `DPoP ${bound}`, dpop }), policy)),
    'malformed token': () =>
      each(bearer, (token) => server.judge(request({ authorization: `Bearer ${token}=` }), policy)),
  };
  /** @type {Record<string, number[]>} */
  const samples = Object.fromEntries(Object.keys(cases).map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    proofs = Array.from({ length: size }, () => prove(bound));
    ec = proofs.map(parts);
    for (const [name, run] of Object.entries(cases)) {
      const startedAt = process.hrtime.bigint();
      await run();
      samples[name].push(Number(process.hrtime.bigint() - startedAt) / size / 1000);
    }
  }
  const cost = (name) => median(samples[name]);
  console.log(`verify: medians of ${rounds} interleaved rounds of ${size}, µs each`);
  for (const name of Object.keys(cases)) console.log(`  ${name.padEnd(40)} ${cost(name).toFixed(1).padStart(8)}`);
  const ratio = (a, b) => (cost(a) / cost(b)).toFixed(2);
  console.log(
    `  floor : Bearer, every token new           ${ratio('floor: one RS256 verify', 'Bearer, every token new').padStart(8)}`,
  );
  console.log(
    `  floor : DPoP, one key, every proof new    ${ratio('floor: one ES256 verify', 'DPoP, one key, every proof new').padStart(8)}`,
  );
}
