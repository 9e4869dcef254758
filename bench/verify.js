// What judging a token costs beside the one signature check that it needs: interleaved rounds, medians, ratios.
import { constants, createHash, generateKeyPairSync, randomUUID, sign, verify } from 'node:crypto';
import { createMemoryReplayStore } from '../dist/dpop/replay.js';
import { thumbprint } from '../dist/jose/jwk.js';
import { createResourceServer } from '../dist/resource-server/resource-server.js';

const issuer = 'https://idp.example/';
const audience = 'https://api.example/';
const url = 'https://api.example/messages';
const now = Math.floor(Date.now() / 1000);
const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

const signer = generateKeyPairSync('rsa', { modulusLength: 2048 });
const holder = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const jwk = holder.publicKey.export({ format: 'jwk' });

function mint(claims) {
  const input = `${encode({ alg: 'RS256', typ: 'at+jwt', kid: 'k1' })}.${encode({
    iss: issuer,
    aud: audience,
    sub: randomUUID(),
    client_id: randomUUID(),
    jti: randomUUID(),
    iat: now,
    exp: now + 3600,
    scope: 'openid profile read:messages write:messages',
    ...claims,
  })}`;
  return `${input}.${sign('sha256', Buffer.from(input), signer.privateKey).toString('base64url')}`;
}

function prove(token) {
  const ath = createHash('sha256').update(token).digest('base64url');
  const input = `${encode({ alg: 'ES256', typ: 'dpop+jwt', jwk })}.${encode({ jti: randomUUID(), htm: 'GET', htu: url, iat: now, ath })}`;
  const signature = sign('sha256', Buffer.from(input), { key: holder.privateKey, dsaEncoding: 'ieee-p1363' });
  return `${input}.${signature.toString('base64url')}`;
}

const request = (headers) => ({ method: 'GET', url, headers: { get: (name) => headers[name.toLowerCase()] ?? null } });
const parts = (jws) => [
  Buffer.from(jws.slice(0, jws.lastIndexOf('.'))),
  Buffer.from(jws.slice(jws.lastIndexOf('.') + 1), 'base64url'),
];

const each = (items, act) => {
  for (const item of items) act(item);
};

/** Prints, for each case, its cost as a multiple of its floor. */
export async function bench({ quick }) {
  const size = quick ? 2000 : 10_000;
  const rounds = quick ? 5 : 15;
  const keys = {
    generation: 0,
    find: () => signer.publicKey,
    has: () => true,
    usable: () => true,
    refetch: () => undefined,
  };
  // Each token is new to this one in every round; the other keeps what it has verified.
  const forgetful = createResourceServer({ issuers: [{ issuer, keys }], audience, tokenCache: 'off' });
  // It is asked in the second in which it is made.
  const dpop = { replay: createMemoryReplayStore({ since: 0 }) };
  const server = createResourceServer({ issuers: [{ issuer, keys }], audience, dpop });
  const policy = { scopes: ['read:messages'] };
  const bearer = Array.from({ length: size }, () => mint({}));
  const bound = mint({ cnf: { jkt: thumbprint(jwk) } });
  let proofs = [];
  const rsa = bearer.map(parts);
  const rsaKey = { key: signer.publicKey, padding: constants.RSA_PKCS1_PADDING };
  const ecKey = { key: holder.publicKey, dsaEncoding: 'ieee-p1363' };
  let ec = [];

  const cases = {
    'floor: one RS256 verify': () => each(rsa, ([input, signature]) => verify('sha256', input, rsaKey, signature)),
    'Bearer, every token new': () =>
      each(bearer, (token) => forgetful.authorize(request({ authorization: `Bearer ${token}` }), policy)),
    'floor: one ES256 verify': () => each(ec, ([input, signature]) => verify('sha256', input, ecKey, signature)),
    'DPoP, one key, every proof new': () =>
      each(proofs, (dpop) => server.authorize(request({ authorization: `DPoP ${bound}`, dpop }), policy)),
    'malformed token': () =>
      each(bearer, (token) => {
        server.judge(request({ authorization: `Bearer ${token}=` }), policy);
      }),
  };
  const samples = Object.fromEntries(Object.keys(cases).map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    proofs = Array.from({ length: size }, () => prove(bound));
    ec = proofs.map(parts);
    for (const [name, run] of Object.entries(cases)) {
      const startedAt = process.hrtime.bigint();
      run();
      samples[name].push(Number(process.hrtime.bigint() - startedAt) / size / 1000);
    }
  }
  const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
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
