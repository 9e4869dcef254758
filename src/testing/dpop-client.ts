import type { JsonObject } from '../core/jose/json.ts';
import { thumbprint } from '../core/jose/jwk.ts';
import type { ProofAlg } from '../core/jose/jws.ts';
import { draftProof, makeKeyPair, type ProvenRequest } from '../core/jose/signed-proof.ts';
import { checkOptionMembers, type OptionMembers } from '../core/option-members.ts';
import { changeProof, type ProofFlaw, signChanged } from './flaws.ts';

/** Options of {@link TestIssuer.dpopClient}. */
export interface DpopClientOptions {
  /** Default `ES256`, the default of resource servers. */
  readonly alg?: ProofAlg;
}

/** The request that a proof is for. */
export interface ProofRequest extends ProvenRequest {
  /** Defect of the proof. Default: none. */
  readonly flaw?: ProofFlaw | undefined;
}

/** The request that headers are for. */
export interface DpopCall extends Omit<ProofRequest, 'token'> {
  /** Scopes of a token minted for the request, separated by spaces. Default: none. */
  readonly scope?: string | undefined;
  /** Token to send instead of a minted one. */
  readonly token?: string | undefined;
}

// A type, because `fetch` does not accept an interface as headers.
/** The two headers of a DPoP request (RFC 9449 §7.1). */
export type DpopHeaders = {
  /** The token, after `DPoP`. */
  readonly authorization: string;
  /** The proof. */
  readonly dpop: string;
};

/** A client with its own key pair. */
export interface DpopClient {
  /** Public key in proofs. */
  readonly jwk: JsonObject;
  /** RFC 7638 thumbprint of the key: `jkt` of its tokens. */
  readonly jkt: string;
  /** Like {@link TestIssuer.token}, bound to the key of this client. */
  token(claims?: JsonObject): string;
  /** Creates a proof with a new `jti`. */
  proof(request: ProofRequest): string;
  /**
   * Headers of one request: a bound token, and a proof for it. The proof is valid once.
   *
   * @example
   * const url = 'http://localhost/messages';
   * const response = await app.request(url, { headers: client.headers({ url, scope: 'read:messages' }) });
   */
  headers(call: DpopCall): DpopHeaders;
}

const requestMembers: OptionMembers<ProofRequest> = { method: true, url: true, token: true, nonce: true, flaw: true };

/** Creates a client. `now` returns whole seconds since the epoch. */
export function createDpopClient(
  now: () => number,
  mint: (claims: JsonObject) => string,
  { alg = 'ES256' }: DpopClientOptions,
): DpopClient {
  const key = makeKeyPair(alg);
  const jwk = key.publicJwk;
  const jkt = thumbprint(jwk);
  const token: DpopClient['token'] = (claims) => mint({ cnf: { jkt }, ...claims });
  const proof: DpopClient['proof'] = (request) => {
    checkOptionMembers<ProofRequest>('proof', request, requestMembers);
    // A path would be refused as another URL, without a visible cause.
    if (!URL.canParse(String(request.url)))
      throw new TypeError('url: write the absolute URL of the request, as in https://api.test/messages');
    const draft = draftProof(key, request, now());
    const { htm, htu, iat } = draft.claims;
    return signChanged({ ...draft, key }, changeProof(request.flaw, { htm, htu, now: iat, key }));
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
