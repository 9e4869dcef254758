import { type KeyObject, sign } from 'node:crypto';
import { writeCompact } from '../../src/core/jose/sign.ts';

/** A token before it is written down; mutations change it. */
export interface Draft {
  header: Record<string, unknown>;
  claims: Record<string, unknown>;
  /** Last change to the JSON of header and claims. */
  headerText: (text: string) => string | Uint8Array;
  claimsText: (text: string) => string | Uint8Array;
  /** Signs the signing input. */
  sign: (input: Buffer) => Buffer;
  /** Last change to the whole text. */
  finish: (token: string) => string;
}

/** Values that the tokens of one run share. */
export interface Mint {
  readonly issuer: string;
  readonly audience: string;
  /** Seconds since the epoch: the time that every verifier sees. */
  readonly now: number;
  readonly kid: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

/** A token that all verifiers accept. */
export function createDraft({ issuer, audience, now, kid, privateKey }: Mint): Draft {
  const client = { client_id: 'client', jti: 'token' };
  return {
    header: { alg: 'RS256', kid, typ: 'at+jwt' },
    claims: { iss: issuer, aud: audience, sub: 'user|1', iat: now - 10, exp: now + 3600, scope: 'read', ...client },
    headerText: (text) => text,
    claimsText: (text) => text,
    sign: (input) => sign('sha256', input, privateKey),
    finish: (token) => token,
  };
}

/** The compact JWS of a draft. */
export function writeDraft(draft: Draft): string {
  return draft.finish(
    writeCompact({
      header: draft.headerText(JSON.stringify(draft.header)),
      payload: draft.claimsText(JSON.stringify(draft.claims)),
      sign: draft.sign,
    }),
  );
}
