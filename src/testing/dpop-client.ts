import { hash, randomUUID } from 'node:crypto';
import type { ProofAlg } from '../jose/algorithms.ts';
import type { JsonObject } from '../jose/json.ts';
import { thumbprint } from '../jose/jwk.ts';
import { checkOptionMembers, type OptionMembers } from '../option-members.ts';
import { signChanged } from './change.ts';
import { changeProof, type ProofFlaw } from './proof-flaws.ts';
import { makeKeyPair } from './signing.ts';

/** Options of {@link TestIssuer.dpopClient}. */
export interface DpopClientOptions {
  /** Default `ES256`, which resource servers allow unless told otherwise. */
  readonly alg?: ProofAlg;
}

/** The call that a proof is for. */
export interface ProofRequest {
  /** Default `GET`. */
  readonly method?: string;
  /** Absolute, as the client calls it; query and fragment are left out of the proof (RFC 9449 §4.2). */
  readonly url: string | URL;
  /** The access token that goes with the proof. */
  readonly token: string;
  /** From the `DPoP-Nonce` header of an answer. Default: none. */
  readonly nonce?: string | undefined;
  /** What is to be wrong with the proof. Default: nothing. */
  readonly flaw?: ProofFlaw | undefined;
}

/** The call that headers are for. */
export interface DpopCall extends Omit<ProofRequest, 'token'> {
  /** Scopes of a token that is minted for the call, separated by spaces. Default: none. */
  readonly scope?: string | undefined;
  /** A token to use in place of one that is minted. */
  readonly token?: string | undefined;
}

// A type that has only these members, unlike an interface, is what `fetch` takes for headers.
/** The two headers of a DPoP call (RFC 9449 §7.1). */
export type DpopHeaders = { readonly authorization: string; readonly dpop: string };

/** A client with a key pair of its own. */
export interface DpopClient {
  /** Public key, as proofs carry it. */
  readonly jwk: JsonObject;
  /** RFC 7638 thumbprint of the key: what tokens are bound to. */
  readonly jkt: string;
  /** As {@link TestIssuer.token}, bound to the key of this client. */
  token(claims?: JsonObject): string;
  /** Makes a proof with a new `jti`. */
  proof(request: ProofRequest): string;
  /**
   * The headers of one call: a bound token, and a proof for it. Good for one time only, as the proof is.
   *
   * @example
   * const url = 'http://localhost/messages';
   * const response = await app.request(url, { headers: client.headers({ url, scope: 'read:messages' }) });
   */
  headers(call: DpopCall): DpopHeaders;
}

/** What a client is made of. */
export interface DpopClientParts extends DpopClientOptions {
  /** Seconds since the epoch, whole. */
  readonly now: () => number;
  readonly mint: (claims: JsonObject) => string;
}

const requestMembers: OptionMembers<ProofRequest> = { method: true, url: true, token: true, nonce: true, flaw: true };

/** Makes a DPoP client with a new key pair. */
export function createDpopClient({ alg = 'ES256', now, mint }: DpopClientParts): DpopClient {
  const key = makeKeyPair(alg);
  const jwk = key.publicJwk;
  const jkt = thumbprint(jwk);
  const token: DpopClient['token'] = (claims) => mint({ cnf: { jkt }, ...claims });
  const proof: DpopClient['proof'] = (request) => {
    checkOptionMembers<ProofRequest>('proof', request, requestMembers);
    const { method: htm = 'GET', nonce, flaw } = request;
    const htu = String(request.url).replace(/[?#].*$/s, '');
    // A path would be refused as the URL of another call, and nobody would see why.
    if (!URL.canParse(htu))
      throw new TypeError('url: write the whole URL of the call, as in https://api.test/messages');
    const iat = now();
    const claims = { jti: randomUUID(), htm, htu, iat, ath: hash('sha256', request.token, 'base64url'), nonce };
    return signChanged(
      { header: { typ: 'dpop+jwt', alg, jwk }, claims, key },
      changeProof(flaw, { htm, htu, now: iat, key }),
    );
  };
  return {
    jwk,
    jkt,
    token,
    proof,
    headers(call) {
      checkOptionMembers<DpopCall>('headers', call, { ...requestMembers, scope: true });
      const { scope, token: given, ...request } = call;
      const sent = given ?? token({ scope });
      return { authorization: `DPoP ${sent}`, dpop: proof({ ...request, token: sent }) };
    },
  };
}
