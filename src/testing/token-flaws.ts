import { randomBytes, randomUUID } from 'node:crypto';
import type { Reason } from '../failures.ts';
import type { JsonObject } from '../jose/json.ts';
import { type Change, cutSignature, findFlaw, hour, listFlaws, spoilSignature } from './change.ts';

export interface TokenFacts {
  readonly issuer: string;
  readonly audience: string;
  /** Seconds since the epoch. */
  readonly now: number;
  readonly encryptionKid: string;
}

type Flaw = (facts: TokenFacts) => Change;

const claims = (members: JsonObject) => (): Change => ({ claims: members });
const header = (members: JsonObject) => (): Change => ({ header: members });
const finish = (last: (token: string) => string) => (): Change => ({ finish: last });

const flaws = {
  token_too_large: claims({ padding: 'x'.repeat(8192) }),
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
} as const satisfies Partial<Record<Reason, Flaw>>;

/** Defect of an access token, named by the reason of its refusal. */
export type TokenFlaw = keyof typeof flaws;

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
export const tokenFlaws: readonly TokenFlaw[] = listFlaws(flaws);

export function changeToken(flaw: TokenFlaw, facts: TokenFacts): Change {
  return findFlaw(flaws, flaw)(facts);
}

function encode(value: string): string {
  return Buffer.from(value).toString('base64url');
}

/** Returns a random string as long as a SHA-256 thumbprint. */
function random(): string {
  return randomBytes(32).toString('base64url');
}
