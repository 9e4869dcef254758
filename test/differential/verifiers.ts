import { createServer } from 'node:http';
import { auth } from 'express-oauth2-jwt-bearer';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { allowInsecureRequests, clockTolerance, validateJwtAccessToken } from 'oauth4webapi';
import { AccessError } from '../../src/core/failures.ts';
import { createStaticKeySet } from '../../src/core/keys/static-key-set.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { listen } from '../support/listening.ts';
import type { Peer } from './differences.ts';
import type { Mint } from './draft.ts';

/** Clock tolerance in seconds, equal for all verifiers. */
const tolerance = 5;

/** The verifiers, set alike. */
export type Verifiers = Awaited<ReturnType<typeof openVerifiers>>;

/** Sets up the verifiers before one key set, which those that fetch get over loopback. */
export async function openVerifiers({ issuer, audience, now, kid, publicKey }: Mint) {
  const keys = [{ ...publicKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' }];
  const provider = createServer((_, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys }));
  });
  const { origin, close } = await listen(provider);
  const jwksUri = `${origin}/jwks`;

  const server = createResourceServer({
    issuers: [{ issuer, keys: createStaticKeySet({ keys }) }],
    audience,
    clockTolerance: { exp: tolerance, nbf: tolerance },
    now: () => now,
  });
  const local = createLocalJWKSet({ keys });
  const middleware = auth({ issuer, audience, jwksUri, clockTolerance: tolerance, dpop: { enabled: false } });

  /** True for each other verifier that accepts. */
  const peers: Readonly<Record<Peer, (token: string) => Promise<boolean>>> = {
    jose: (token) =>
      accepts(
        jwtVerify(token, local, {
          issuer,
          audience,
          algorithms: ['RS256'],
          clockTolerance: tolerance,
          requiredClaims: ['exp', 'iat', 'sub'],
          currentDate: new Date(now * 1000),
        }),
      ),
    oauth4webapi: async (token) => {
      let request: Request;
      try {
        request = new Request('http://api.example.test/', { headers: { authorization: `Bearer ${token}` } });
      } catch {
        return false; // no header can carry it
      }
      const options = { [allowInsecureRequests]: true, [clockTolerance]: tolerance, signingAlgorithms: ['RS256'] };
      return accepts(validateJwtAccessToken({ issuer, jwks_uri: jwksUri }, request, audience, options));
    },
    'express-oauth2-jwt-bearer': (token) => callMiddleware(middleware, token),
  };
  return {
    /** Returns the reason, or `accepted`. */
    async judge(token: string): Promise<string> {
      const value = `Bearer ${token}`;
      const headers = { get: (name: string) => (name === 'authorization' ? value : null) };
      const judged = await server.judge({ method: 'GET', url: 'http://api.example.test/', headers });
      return judged instanceof AccessError ? judged.reason : 'accepted';
    },
    peers,
    close,
  };
}

function accepts(verdict: Promise<unknown>): Promise<boolean> {
  return verdict.then(
    () => true,
    () => false,
  );
}

type Middleware = ReturnType<typeof auth>;

/** Hands a middleware of Express what it reads of a request. */
async function callMiddleware(middleware: Middleware, token: string): Promise<boolean> {
  const headers: Readonly<Record<string, string>> = { host: 'api.example.test', authorization: `Bearer ${token}` };
  const request = {
    headers,
    method: 'GET',
    protocol: 'http',
    url: '/',
    query: {},
    get: (name: string) => headers[name.toLowerCase()],
    is: () => false,
  };
  return new Promise((resolve) => {
    const next = (error?: unknown): void => resolve(error === undefined);
    // Express is not installed; its types describe a complete request.
    void middleware(request as unknown as Parameters<Middleware>[0], {} as Parameters<Middleware>[1], next);
  });
}
