import { randomBytes, randomUUID } from 'node:crypto';
import type { Reason } from '../core/failures.ts';
import type { JsonObject } from '../core/jose/json.ts';
import { signCompact } from '../core/jose/sign.ts';
import { type KeyPair, makeKeyPair } from '../core/jose/signed-proof.ts';

interface Change {
  /** Members merged over the header; `undefined` omits one. */
  readonly header?: JsonObject;
  /** Members merged over the claims; `undefined` omits one. */
  readonly claims?: JsonObject;
  /** Signs instead of the right key. */
  readonly key?: KeyPair;
  readonly finish?: (jws: string) => string;
}

/** Header, claims and key before any change. */
export interface Draft {
  readonly header: JsonObject;
  readonly claims: JsonObject;
  readonly key: KeyPair;
}

interface TokenFacts {
  readonly issuer: string;
  readonly audience: string;
  /** Seconds since the epoch. */
  readonly now: number;
  readonly encryptionKid: string;
}

interface ProofFacts {
  readonly htm: string;
  readonly htu: string;
  /** Seconds since the epoch. */
  readonly now: number;
  readonly key: KeyPair;
}

type Flaws<Facts> = Partial<Record<Reason, (facts: Facts) => Change>>;

/** Seconds; above the clock tolerance of any configuration. */
export const hour = 3600;

const claims = (members: JsonObject) => (): Change => ({ claims: members });
const header = (members: JsonObject) => (): Change => ({ header: members });
const finish = (last: (jws: string) => string) => (): Change => ({ finish: last });

const changesOfTokens = {
  token_too_large: claims({ padding: 'x'.repeat(16_384) }),
  opaque_token: finish(() => random()),
  encrypted_token: finish((token) => `${token}.${random()}.${random()}`),
  malformed_token: finish(cutSignature),
  malformed_encoding: finish((token) => `${token}=`),
  malformed_header: finish((token) => token.replace(/^[^.]*/, encode('{'))),
  malformed_claims: finish((token) => token.replace(/\.[^.]*\./, `.${encode('{')}.`)),
  unsupported_alg: header({ alg: 'HS256' }),
  unsupported_typ: header({ typ: 'logout+jwt' }),
  unsupported_header: header({ crit: ['exp'] }),
  missing_kid: header({ kid: undefined }),
  malformed_kid: header({ kid: 1 }),
  invalid_issuer: ({ issuer }) => ({ claims: { iss: `${issuer}other/` } }),
  unknown_kid: () => ({ header: { kid: randomUUID() } }),
  key_not_usable: ({ encryptionKid }) => ({ header: { kid: encryptionKid } }),
  invalid_signature: finish(spoilSignature),
  invalid_audience: ({ audience }) => ({ claims: { aud: `${audience}other/` } }),
  missing_exp: claims({ exp: undefined }),
  malformed_exp: claims({ exp: 'in an hour' }),
  expired: ({ now }) => ({ claims: { iat: now - 2 * hour, exp: now - hour } }),
  malformed_nbf: claims({ nbf: 'now' }),
  not_yet_valid: ({ now }) => ({ claims: { nbf: now + hour, exp: now + 2 * hour } }),
  missing_iat: claims({ iat: undefined }),
  malformed_iat: claims({ iat: 'now' }),
  issued_in_future: ({ now }) => ({ claims: { iat: now + hour, exp: now + 2 * hour } }),
  malformed_sub: claims({ sub: 1 }),
  malformed_scope: claims({ scope: ['read:messages'] }),
  malformed_actor: claims({ act: 'agent-1' }),
  not_an_access_token: claims({ token_use: 'id' }),
  malformed_cnf: claims({ cnf: { jkt: 'short' } }),
  unsupported_cnf: claims({ cnf: { kid: 'another key' } }),
  bound_token_as_bearer: () => ({ claims: { cnf: { jkt: random() } } }),
} as const satisfies Flaws<TokenFacts>;

const changesOfProofs = {
  // Node joins headers of one name in this way.
  multiple_dpop_proofs: finish((proof) => `${proof}, ${proof}`),
  proof_too_large: claims({ padding: 'x'.repeat(12_288) }),
  malformed_proof: finish(cutSignature),
  unsupported_proof_typ: header({ typ: 'JWT' }),
  unsupported_proof_alg: header({ alg: 'HS256' }),
  unsupported_proof_header: header({ crit: ['exp'] }),
  malformed_proof_jwk: header({ jwk: undefined }),
  private_proof_jwk: ({ key }): Change => ({ header: { jwk: key.privateKey.export({ format: 'jwk' }) } }),
  malformed_proof_claims: claims({ jti: undefined }),
  proof_method_mismatch: ({ htm }) => ({ claims: { htm: `${htm}-OTHER` } }),
  proof_url_mismatch: ({ htu }) => ({ claims: { htu: `${htu}/other` } }),
  proof_too_old: ({ now }) => ({ claims: { iat: now - hour } }),
  proof_in_future: ({ now }) => ({ claims: { iat: now + hour } }),
  proof_token_mismatch: claims({ ath: 'another token' }),
  proof_key_mismatch: ({ key }) => {
    const other = makeKeyPair(key.alg);
    return { header: { jwk: other.publicJwk }, key: other };
  },
  invalid_proof_signature: finish(spoilSignature),
} as const satisfies Flaws<ProofFacts>;

/** Defect of an access token, named by the reason of its refusal. */
export type TokenFlaw = keyof typeof changesOfTokens;

/** Defect of a DPoP proof, named by the reason of its refusal. */
export type ProofFlaw = keyof typeof changesOfProofs;

/**
 * Every {@link TokenFlaw}, in the order of the checks: for tables of cases.
 *
 * @example
 * for (const flaw of tokenFlaws) {
 *   test(`${flaw} → refused`, async () => {
 *     const authorization = `Bearer ${issuer.flawed(flaw)}`;
 *     equal((await app.request('/messages', { headers: { authorization } })).status, 401);
 *   });
 * }
 */
export const tokenFlaws: readonly TokenFlaw[] = Object.keys(changesOfTokens) as TokenFlaw[]; // the table is a literal

/** Every {@link ProofFlaw}, in the order of the checks: for tables of cases. */
export const proofFlaws: readonly ProofFlaw[] = Object.keys(changesOfProofs) as ProofFlaw[]; // the table is a literal

export function changeToken(flaw: TokenFlaw, facts: TokenFacts): Change {
  return findChange(changesOfTokens, flaw)(facts);
}

/** Returns the change that gives a proof this flaw; empty without a flaw. */
export function changeProof(flaw: ProofFlaw | undefined, facts: ProofFacts): Change {
  return flaw === undefined ? {} : findChange(changesOfProofs, flaw)(facts);
}

/** Finds a flaw in its table. Throws `TypeError` for an unknown one: tests are often written without types. */
function findChange<T extends object, F extends keyof T>(table: T, flaw: F): T[F] {
  if (!Object.hasOwn(table, flaw)) throw new TypeError(`flaw: write any of ${Object.keys(table).join(', ')}`);
  return table[flaw];
}

export function signChanged({ header, claims, key }: Draft, change: Change): string {
  const jws = signCompact({ ...header, ...change.header }, { ...claims, ...change.claims }, change.key ?? key);
  return change.finish === undefined ? jws : change.finish(jws);
}

function cutSignature(jws: string): string {
  return jws.slice(0, jws.lastIndexOf('.'));
}

/** Inverts one bit of the signature of a JWS. */
function spoilSignature(jws: string): string {
  const start = jws.lastIndexOf('.') + 1;
  const signature = Buffer.from(jws.slice(start), 'base64url');
  signature.writeUInt8(signature.readUInt8() ^ 1);
  return `${jws.slice(0, start)}${signature.toString('base64url')}`;
}

function encode(value: string): string {
  return Buffer.from(value).toString('base64url');
}

/** Returns a random string as long as a SHA-256 thumbprint. */
function random(): string {
  return randomBytes(32).toString('base64url');
}
