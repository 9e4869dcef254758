import { randomUUID } from 'node:crypto';
import type { Introspection } from '../core/introspection/introspection.ts';
import type { JsonObject } from '../core/jose/json.ts';
import type { JwkSet } from '../core/jose/jwk.ts';
import type { TokenAlg } from '../core/jose/jws.ts';
import type { KeySet } from '../core/keys/key-set.ts';
import { checkOptionMembers } from '../core/option-members.ts';
import { type CertificateClient, createCertificateClient } from './certificate.ts';
import { createDpopClient, type DpopClient, type DpopClientOptions } from './dpop-client.ts';
import { changeToken, hour, signChanged, type TokenFlaw } from './flaws.ts';
import { type IntrospectionAccount, startIssuerServer } from './issuer-server.ts';
import { createKeyRing, type KeyRing, type PreviousKeys } from './key-ring.ts';
import { createOpaqueTokens, type OpaqueTokens } from './opaque-tokens.ts';

/** Options of {@link createTestIssuer}. */
export interface TestIssuerOptions {
  /** `iss` of the tokens. Default `https://issuer.test/`. */
  readonly issuer?: string;
  /** `aud` of the tokens. Default `https://api.test/`. */
  readonly audience?: string;
  /** `alg` of the tokens; the resource server must allow it. Default `RS256`, the default there too. */
  readonly alg?: TokenAlg;
  /** Seconds since the epoch. Default: the clock of this host. */
  readonly now?: () => number;
}

// A type, because `fetch` does not accept an interface as headers.
/** Header of a Bearer request (RFC 6750 §2.1). */
export type BearerHeaders = {
  /** The token, after `Bearer`. */
  readonly authorization: string;
};

/** Mints access tokens for tests. It is a `TrustedIssuer`: `issuers: [issuer]`. */
export interface TokenIssuer {
  /** Value of `iss`. */
  readonly issuer: string;
  /** Value of `aud`. */
  readonly audience: string;
  /** `kid` of the key that signs. */
  readonly kid: string;
  /** Copy of the published keys, which a rotation does not change. */
  readonly jwks: JwkSet<JsonObject>;
  /** The published keys, which follow rotations without a network. */
  readonly keys: KeySet;
  /**
   * Mints a valid access token (RFC 9068 §2.2): `iss`, `aud`, `sub`, `client_id`, `iat`, `exp` (in an hour) and `jti`,
   * with `claims` merged over them and `header` over the JOSE header; a member that is `undefined` is omitted.
   *
   * @example
   * const token = issuer.token({ sub: 'alice', scope: 'read:messages write:messages' });
   */
  token(claims?: JsonObject, header?: JsonObject): string;
  /**
   * Mints an access token that is refused for exactly this reason if sent as Bearer; the rest of it is valid.
   *
   * @example
   * const authorization = `Bearer ${issuer.flawed('expired', { scope: 'read:messages' })}`;
   */
  flawed(flaw: TokenFlaw, claims?: JsonObject): string;
  /**
   * Header of a Bearer request, with a new token.
   *
   * @example
   * const response = await app.request('/messages', { headers: issuer.headers({ scope: 'read:messages' }) });
   */
  headers(claims?: JsonObject): BearerHeaders;
  /** Creates a client whose tokens are bound to its own key (RFC 9449). */
  dpopClient(options?: DpopClientOptions): DpopClient;
  /** Creates a client whose tokens are bound to its own certificate (RFC 8705). Needs the package `@peculiar/x509`. */
  certificateClient(): Promise<CertificateClient>;
  /** Mints an opaque token, with these claims merged over the usual ones. */
  opaqueToken(claims?: JsonObject): string;
  /** Makes an opaque token inactive: `inactive_token`. */
  revoke(token: string): void;
  /**
   * Like `createIntrospection`, with an endpoint in the memory of this process. Responses are not cached.
   *
   * @example
   * const introspection = await issuer.introspection();
   * const server = createResourceServer({ issuers: [issuer], audience: issuer.audience, introspection });
   * const headers = { authorization: `Bearer ${issuer.opaqueToken({ scope: 'read:messages' })}` };
   */
  introspection(): Promise<Introspection>;
  /**
   * Creates a key that signs afterwards. Returns its `kid`. The previous keys stay `published`, or are `withdrawn`: their
   * tokens are refused as `unknown_kid`. Default `published`.
   */
  rotate(previous?: PreviousKeys): string;
}

/** An issuer in the memory of this process. */
export interface TestIssuer extends TokenIssuer {
  /**
   * Serves discovery document, key set and introspection over TLS on a free loopback port, until `close()`. Keys are
   * shared with this issuer, the address is not: use the tokens of the returned issuer. Needs the package
   * `@peculiar/x509`.
   *
   * @example
   * await using tls = await issuer.listen();
   * const keys = createKeySet({ issuer: tls.issuer, ca: tls.ca });
   */
  listen(): Promise<ListeningIssuer>;
}

/** An issuer reachable over TLS. */
export interface ListeningIssuer extends TokenIssuer, AsyncDisposable {
  /** PEM of its certificate, which cannot sign others: for `createKeySet`, or in a file for NODE_EXTRA_CA_CERTS. */
  readonly ca: string;
  /**
   * Options of `createIntrospection` (RFC 7662) for a server in another process.
   *
   * @example
   * const introspection = createIntrospection({ ...tls.introspectionAccount, ca: tls.ca });
   */
  readonly introspectionAccount: IntrospectionAccount;
  /** Stops listening and closes every connection. */
  close(): Promise<void>;
}

interface Parts {
  readonly issuer: string;
  readonly audience: string;
  readonly ring: KeyRing;
  readonly opaque: OpaqueTokens;
  /** Seconds since the epoch, whole. */
  readonly now: () => number;
}

/**
 * Creates an issuer of access tokens for tests of protected routes. There is no network before `listen()`, and no key before
 * the first token. Throws `TypeError` for an unknown `alg`.
 *
 * @example
 * const issuer = createTestIssuer();
 * const server = createResourceServer({ issuers: [issuer], audience: issuer.audience });
 */
export function createTestIssuer(options: TestIssuerOptions = {}): TestIssuer {
  const members = { issuer: true, audience: true, alg: true, now: true } as const;
  checkOptionMembers<TestIssuerOptions>('createTestIssuer', options, members);
  const { issuer = 'https://issuer.test/', audience = 'https://api.test/', alg = 'RS256' } = options;
  const { now = () => Date.now() / 1000 } = options;
  const ring = createKeyRing(alg);
  const parts: Parts = { issuer, audience, ring, opaque: createOpaqueTokens(), now: () => Math.floor(now()) };
  return Object.assign(createTokenIssuer(parts), { listen: () => listen(parts) });
}

function createTokenIssuer({ issuer, audience, ring, opaque, now }: Parts): TokenIssuer {
  const draft = (claims: JsonObject | undefined, header?: JsonObject) => {
    const { current: key } = ring;
    const iat = now();
    const usual = { iss: issuer, aud: audience, sub: 'test-subject', client_id: 'test-client', iat, exp: iat + hour };
    return {
      header: { alg: key.alg, typ: 'at+jwt', kid: key.kid, ...header },
      claims: { ...usual, jti: randomUUID(), ...claims },
      key,
    };
  };
  const token: TokenIssuer['token'] = (claims, header) => signChanged(draft(claims, header), {});
  return {
    issuer,
    audience,
    keys: ring.keys,
    get kid() {
      return ring.current.kid;
    },
    get jwks() {
      return ring.jwks;
    },
    token,
    flawed: (flaw, claims) => {
      const { encryptionKid } = ring;
      return signChanged(draft(claims), changeToken(flaw, { issuer, audience, now: now(), encryptionKid }));
    },
    headers: (claims) => ({ authorization: `Bearer ${token(claims)}` }),
    dpopClient(client = {}) {
      checkOptionMembers<DpopClientOptions>('dpopClient', client, { alg: true });
      return createDpopClient(now, token, client);
    },
    certificateClient: () => createCertificateClient(token),
    opaqueToken: (claims) => opaque.mint(draft(claims).claims),
    revoke: (revoked) => opaque.revoke(revoked),
    introspection: () => opaque.createIntrospection(issuer),
    rotate: (previous = 'published') => ring.rotate(previous),
  };
}

async function listen(parts: Parts): Promise<ListeningIssuer> {
  const { ring, opaque } = parts;
  const server = await startIssuerServer(() => ring.jwks, opaque.introspect);
  const { issuer, ...listening } = server;
  const disposal = { [Symbol.asyncDispose]: listening.close };
  return Object.assign(createTokenIssuer({ ...parts, issuer }), listening, disposal);
}
