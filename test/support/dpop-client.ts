import { randomUUID } from 'node:crypto';
import { Agent as HttpAgent, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { text } from 'node:stream/consumers';
import { hashToken, makeProofKey, mintProof, thumbprintOf } from './proofs.ts';

/** The request of a proof. */
export interface ProofTarget {
  /** `htu`. */
  readonly url: string;
  /** `htm`. Default GET. */
  readonly method?: string;
  readonly nonce?: string;
  readonly jti?: string;
  /** Seconds since the epoch. Default: now. */
  readonly iat?: number;
}

/** One request. */
export interface Call {
  /** Default GET. */
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A response. */
export interface Answer {
  readonly status: number;
  /** `WWW-Authenticate`. */
  readonly challenge: string | undefined;
  /** `DPoP-Nonce`. */
  readonly nonce: string | undefined;
  /** `Retry-After`. */
  readonly retryAfter: string | undefined;
  /** `X-Request-Id`, which is also in the log line of the request. */
  readonly id: string | undefined;
  readonly body: string;
}

/** A client with its own key, which sends exactly the given input. */
export interface DpopClient {
  /** Thumbprint of its key. */
  readonly jkt: string;
  /** Creates a proof for an access token; the target can override its members. */
  prove(token: string, target: ProofTarget): string;
  /** The headers of a call under the DPoP scheme. */
  headers(token: string, target: ProofTarget): Readonly<Record<'authorization' | 'dpop', string>>;
  /** Sends a request, on a connection that is kept. Rejects where the connection breaks. */
  call(url: string, call?: Call): Promise<Answer>;
  /** Closes its connections. */
  close(): void;
}

/** Options of the client. */
export interface DpopClientOptions {
  /** Algorithm of its key and its proofs. Default: ES256. */
  readonly alg?: 'ES256' | 'ES384' | 'EdDSA' | 'RS256' | 'PS256';
  /** PEM of the authority behind https. */
  readonly ca?: string;
}

/** An idle connection is given up well before the server closes it: a request sent at that moment would be lost. */
const connections = { keepAlive: true, timeout: 1000 };

/** Creates a client with a new key. */
export function createDpopClient({ alg = 'ES256', ca }: DpopClientOptions = {}): DpopClient {
  const key = makeProofKey(alg);
  const plain = new HttpAgent(connections);
  const secure = new HttpsAgent({ ...connections, ...(ca !== undefined && { ca }) });

  const prove = (token: string, target: ProofTarget): string => {
    const { url, method = 'GET', nonce, jti = randomUUID(), iat = Math.floor(Date.now() / 1000) } = target;
    const claims = { jti, htm: method, htu: url, iat, ath: hashToken(token), nonce };
    return mintProof(claims, { key, header: { alg } });
  };

  return {
    jkt: thumbprintOf(key.jwk),
    prove,
    headers: (token, target) => ({ authorization: `DPoP ${token}`, dpop: prove(token, target) }),
    call(url, { method = 'GET', headers = {} } = {}) {
      const isSecure = url.startsWith('https:');
      const request = isSecure ? requestHttps : requestHttp;
      const agent = isSecure ? secure : plain;
      return new Promise((resolve, reject) => {
        const outgoing = request(url, { method, headers, agent, family: 4 }, (response) => {
          const read = (name: string): string | undefined => response.headersDistinct[name]?.join(', ');
          text(response).then((body) => {
            resolve({
              status: response.statusCode ?? 0,
              challenge: read('www-authenticate'),
              nonce: read('dpop-nonce'),
              retryAfter: read('retry-after'),
              id: read('x-request-id'),
              body,
            });
          }, reject);
        });
        outgoing.on('error', reject).end();
      });
    },
    close() {
      plain.destroy();
      secure.destroy();
    },
  };
}
