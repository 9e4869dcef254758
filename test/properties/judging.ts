import { generateKeyPairSync } from 'node:crypto';
import { AccessError } from '../../src/core/failures.ts';
import type { ResourceRequest } from '../../src/core/http/request.ts';
import { signCompact } from '../../src/core/jose/sign.ts';
import { createStaticKeySet } from '../../src/core/keys/static-key-set.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
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

/** The time of every validation, in seconds. */
export const now = 1_800_000_000;
export const algs = Object.keys(pairs) as readonly Alg[]; // the keys of the record above
export const proofKey: ProofKey = makeProofKey();

/** URL of the requests. */
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
  // A proof can be validated many times here; other tests check that it is accepted once.
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

/** A valid proof for the bound token, with changes. */
export function prove(
  claims: Readonly<Record<string, unknown>> = {},
  header: Readonly<Record<string, unknown>> = {},
): string {
  const good = { jti: 'one', htm: 'GET', htu: url, iat: now, ath: hashToken(boundToken) };
  return mintProof({ ...good, ...claims }, { key: proofKey, header, signAs: 'ES256' });
}

/** Returns the result of a request: `accepted`, or the reason. Other errors are defects. */
export async function judge(
  headers: Readonly<Record<string, string>>,
  changes: Partial<ResourceRequest> = {},
): Promise<string> {
  const lookUp = (name: string): string | null => headers[name.toLowerCase()] ?? null;
  const judged = await server.judge({ method: 'GET', url, headers: { get: lookUp }, ...changes });
  return judged instanceof AccessError ? judged.reason : 'accepted';
}

export const judgeBearer = (token: string): Promise<string> => judge({ authorization: `Bearer ${token}` });
export const judgeProof = (proof: string): Promise<string> =>
  judge({ authorization: `DPoP ${boundToken}`, dpop: proof });
