import { randomUUID } from 'node:crypto';
import type { TokenAlg } from '../jose/algorithms.ts';
import type { JsonObject } from '../jose/json.ts';
import type { JwkSet } from '../jose/jwk.ts';
import type { KeySet } from '../keys/key-set.ts';
import { checkOptionMembers } from '../option-members.ts';
import type { Introspection } from '../token-status/introspection.ts';
import { type CertificateClient, createCertificateClient } from './certificate-client.ts';
import { hour, signChanged } from './change.ts';
import { createDpopClient, type DpopClient, type DpopClientOptions } from './dpop-client.ts';
import { type IntrospectionAccount, startIssuerServer } from './issuer-server.ts';
import { createKeyRing, type KeyRing, type PreviousKeys } from './key-ring.ts';
import { createOpaqueTokens, type OpaqueTokens } from './opaque-tokens.ts';
import { changeToken, type TokenFlaw } from './token-flaws.ts';

/** Options of {@link createTestIssuer}. */
export interface TestIssuerOptions {
  /** `iss` of the tokens. Default `https://issuer.test/`. */
  readonly issuer?: string;
  /** `aud` of the tokens. Default `https://api.test/`. */
  readonly audience?: string;
  /** `alg` of the tokens; the resource server must allow it. Default `RS256`, which it does unless told otherwise. */
  readonly alg?: TokenAlg;
  /** Seconds since the epoch. Default: the clock of this machine. */
  readonly now?: () => number;
}

// A type that has only these members, unlike an interface, is what `fetch` takes for headers.
/** The header of a Bearer call (RFC 6750 §2.1). */
export type BearerHeaders = { readonly authorization: string };

/** Mints access tokens for tests. A `TrustedIssuer` as it is: `issuers: [issuer]`. */
export interface TokenIssuer {
  readonly issuer: string;
  readonly audience: string;
  /** `kid` of the key that signs now. */
  readonly kid: string;
  /** The published keys as they are now: a copy, which a rotation does not change. */
  readonly jwks: JwkSet<JsonObject>;
  /** The published keys as they are at each call: follows rotations, without a network. */
  readonly keys: KeySet;
  /**
   * Mints a valid access token (RFC 9068 §2.2): `iss`, `aud`, `sub`, `client_id`, `iat`, `exp` (in an hour) and `jti`,
   * with `claims` laid over them and `header` over the JOSE header; a member that is `undefined` is left out.
   *
   * @example
   * const token = issuer.token({ sub: 'alice', scope: 'read:messages write:messages' });
   */
  token(claims?: JsonObject, header?: JsonObject): string;
  /**
   * Mints an access token that is refused for exactly this reason, sent as Bearer, and good in all else.
   *
   * @example
   * const authorization = `Bearer ${issuer.flawed('expired', { scope: 'read:messages' })}`;
   */
  flawed(flaw: TokenFlaw, claims?: JsonObject): string;
  /**
   * The header of a Bearer call, with a new token.
   *
   * @example
   * const response = await app.request('/messages', { headers: issuer.headers({ scope: 'read:messages' }) });
   */
  headers(claims?: JsonObject): BearerHeaders;
  /** Makes a client whose tokens are bound to a key of its own (RFC 9449). */
  dpopClient(options?: DpopClientOptions): DpopClient;
  /** Makes a client whose tokens are bound to a certificate of its own (RFC 8705). Needs the package `@peculiar/x509`. */
  certificateClient(): Promise<CertificateClient>;
  /** Mints an opaque token with these claims laid over the usual ones: who holds it must ask what it says. */
  opaqueToken(claims?: JsonObject): string;
  /** Makes an opaque token one that is not active: `inactive_token`. */
  revoke(token: string): void;
  /**
   * Makes what a resource server asks about opaque tokens, as `createIntrospection` does; the endpoint is in the memory of
   * this process. No answer is kept.
   *
   * @example
   * const introspection = await issuer.introspection();
   * const server = createResourceServer({ issuers: [issuer], audience: issuer.audience, introspection });
   * const headers = { authorization: `Bearer ${issuer.opaqueToken({ scope: 'read:messages' })}` };
   */
  introspection(): Promise<Introspection>;
  /**
   * Makes a new key, signs with it from now on, and returns its `kid`. The keys before it stay `published`, or are
   * `withdrawn`: their tokens are refused as `unknown_kid`. Default `published`.
   */
  rotate(previous?: PreviousKeys): string;
}

/** An issuer in the memory of this process. */
export interface TestIssuer extends TokenIssuer {
  /**
   * Serves discovery document, key set and introspection over TLS on a free loopback port, until `close()`. Keys are
   * shared with this issuer, the address is not: tokens come from the issuer that is returned. Needs the package
   * `@peculiar/x509`.
   *
   * @example
   * await using tls = await issuer.listen();
   * const keys = createKeySet({ issuer: tls.issuer, ca: tls.ca });
   */
  listen(): Promise<ListeningIssuer>;
}

/** An issuer that can be reached over TLS. */
export interface ListeningIssuer extends TokenIssuer, AsyncDisposable {
  /** PEM of its certificate, which signs no other: for `createKeySet`, or in a file for NODE_EXTRA_CA_CERTS. */
  readonly ca: string;
  /**
   * What a server in another process asks about opaque tokens with (RFC 7662): options of `createIntrospection`, for its
   * environment.
   *
   * @example
   * const introspection = createIntrospection({ ...tls.introspectionAccount, ca: tls.ca });
   */
  readonly introspectionAccount: IntrospectionAccount;
  /** Stops listening and drops every connection. */
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
 * Creates an issuer of access tokens for tests of routes behind a resource server. There is no network before
 * `listen()`, and no key before the first token. An unknown `alg`: `TypeError`.
 *
 * @example
 * const issuer = createTestIssuer();
 * const server = createResourceServer({ issuers: [issuer], audience: issuer.audience });
 */
export function createTestIssuer(options: TestIssuerOptions = {}): TestIssuer {
  checkOptionMembers<TestIssuerOptions>('createTestIssuer', options, {
    issuer: true,
    audience: true,
    alg: true,
    now: true,
  });
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
      return createDpopClient({ ...client, now, mint: token });
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
  const server = await startIssuerServer({ readJwks: () => ring.jwks, introspect: opaque.introspect });
  const { issuer, ca, introspectionAccount, close } = server;
  const more = { ca, introspectionAccount, close, [Symbol.asyncDispose]: close };
  return Object.assign(createTokenIssuer({ ...parts, issuer }), more);
}
