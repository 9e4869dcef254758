import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
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
export type Answer = Awaited<ReturnType<DpopClient['call']>>;

/** A client with its own key, which sends exactly the given input. */
export type DpopClient = ReturnType<typeof createDpopClient>;

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
export function createDpopClient({ alg = 'ES256', ca }: DpopClientOptions = {}) {
  const key = makeProofKey(alg);
  const plain = new HttpAgent(connections);
  const secure = new HttpsAgent({ ...connections, ...(ca !== undefined && { ca }) });

  /** Creates a proof for an access token; the target can override its members. */
  const prove = (token: string, target: ProofTarget): string => {
    const { url, method = 'GET', nonce, jti = randomUUID(), iat = Math.floor(Date.now() / 1000) } = target;
    const claims = { jti, htm: method, htu: url, iat, ath: hashToken(token), nonce };
    return mintProof(claims, { key, header: { alg } });
  };

  return {
    /** Thumbprint of its key. */
    jkt: thumbprintOf(key.jwk),
    prove,
    /** The headers of a call under the DPoP scheme. */
    headers: (token: string, target: ProofTarget) => ({
      authorization: `DPoP ${token}`,
      dpop: prove(token, target),
    }),
    /** Sends a request, on a connection that is kept. Rejects where the connection breaks. */
    async call(url: string, { method = 'GET', headers = {} }: Call = {}) {
      const [request, agent] = url.startsWith('https:') ? [requestHttps, secure] : [requestHttp, plain];
      const outgoing = request(url, { method, headers, agent, family: 4 }).end();
      const [response] = (await once(outgoing, 'response')) as [IncomingMessage]; // the one argument of the event
      const read = (name: string): string | undefined => response.headersDistinct[name]?.join(', ');
      return {
        status: response.statusCode ?? 0,
        challenge: read('www-authenticate'),
        nonce: read('dpop-nonce'),
        retryAfter: read('retry-after'),
        /** Also in the log line of the request. */
        id: read('x-request-id'),
        body: await text(response),
      };
    },
    /** Closes its connections. */
    close() {
      plain.destroy();
      secure.destroy();
    },
  };
}
