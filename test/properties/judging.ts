import { generateKeyPairSync } from 'node:crypto';
import { AccessError } from '../../src/failures.ts';
import type { ResourceRequest } from '../../src/http/request.ts';
import { signCompact } from '../../src/jose/sign.ts';
import { createStaticKeySet } from '../../src/keys/static-key-set.ts';
import { createResourceServer } from '../../src/resource-server/resource-server.ts';
import { hashToken, makeProofKey, mintProof, type ProofKey, thumbprintOf } from '../support/proofs.ts';
import { takeRsaKeys } from '../support/rsa-keys.ts';

const issuer = 'https://idp.example.test/';
const audience = 'https://api.example.test/';
const pairs = {
  RS256: takeRsaKeys(),
  ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  EdDSA: generateKeyPairSync('ed25519'),
} as const;

export type Alg = keyof typeof pairs;

/** Seconds: the time of every judgement. */
export const now = 1_800_000_000;
export const algs = Object.keys(pairs) as readonly Alg[]; // the keys of the record above
export const proofKey: ProofKey = makeProofKey();

/** Where the requests go. */
export const url = 'https://api.example.test/things';

const server = createResourceServer({
  issuers: [
    {
      issuer,
      keys: createStaticKeySet({
        keys: algs.map((alg) => ({ ...pairs[alg].publicKey.export({ format: 'jwk' }), kid: alg, alg })),
      }),
    },
  ],
  audience,
  algorithms: algs,
  trustProxy: 'all',
  // A proof may be judged many times here; that one is accepted once is another test's matter.
  dpop: { replay: 'off' },
  now: () => now,
});

export const goodClaims: Readonly<Record<string, unknown>> = {
  iss: issuer,
  aud: audience,
  sub: 'user|1',
  iat: now,
  exp: now + 3600,
  nbf: now,
  scope: 'read:messages',
};

/** Signs a token of any header and claims with our key for `alg`. */
export function mint(alg: Alg, header: Readonly<Record<string, unknown>> = {}, claims = goodClaims): string {
  return signCompact({ alg, kid: alg, typ: 'at+jwt', ...header }, claims, { alg, privateKey: pairs[alg].privateKey });
}

/** A token bound to the key of the proofs. */
export const boundToken = mint('RS256', {}, { ...goodClaims, cnf: { jkt: thumbprintOf(proofKey.jwk) } });

/** A good proof for the bound token, but for the changes. */
export function prove(
  claims: Readonly<Record<string, unknown>> = {},
  header: Readonly<Record<string, unknown>> = {},
): string {
  const good = { jti: 'one', htm: 'GET', htu: url, iat: now, ath: hashToken(boundToken) };
  return mintProof({ ...good, ...claims }, { key: proofKey, header, signAs: 'ES256' });
}

/** What comes of a request: `accepted`, or the reason. What is thrown is a defect. */
export function judge(headers: Readonly<Record<string, string>>, changes: Partial<ResourceRequest> = {}): string {
  const lookUp = (name: string): string | null => headers[name.toLowerCase()] ?? null;
  const judged = server.judge({ method: 'GET', url, headers: { get: lookUp }, ...changes });
  if (judged instanceof Promise) throw new Error('With keys at hand and no store nothing is waited for.');
  return judged instanceof AccessError ? judged.reason : 'accepted';
}

export const judgeBearer = (token: string): string => judge({ authorization: `Bearer ${token}` });
export const judgeProof = (proof: string): string => judge({ authorization: `DPoP ${boundToken}`, dpop: proof });
