import { describe, expect, it, test } from 'vitest';
import { failures, reasonsElsewhere } from '../../src/core/failures.ts';
import { algorithms, canVerify, tokenAlgs } from '../../src/core/jose/jws.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { createTestIssuer, proofFlaws, type TokenAlg, type TokenFlaw, tokenFlaws } from '../../src/testing/index.ts';
import { words } from '../support/words.ts';
import { bearer, judge } from './judge.ts';

const issuer = createTestIssuer();
const { audience } = issuer;
const issuers = [issuer];

const servers = [
  { name: 'the default', options: {} },
  {
    name: 'the most lenient',
    options: {
      clockTolerance: { exp: 60, nbf: 300 },
      subject: 'optional',
      algorithms: tokenAlgs.filter(canVerify),
      dpop: { mode: 'off' },
      clientCertificate: 'tls',
    },
  },
] as const;

describe.each(servers)('$name resource server', ({ options }) => {
  const server = createResourceServer({ issuers, audience, ...options });

  it.each(tokenFlaws)('%s → that reason', async (flaw) => {
    expect(await judge(server, bearer(issuer.flawed(flaw)))).toBe(flaw);
    expect(await judge(server, bearer(issuer.flawed(flaw, { scope: 'read:messages', sub: 'alice' })))).toBe(flaw);
  });

  it('no flaw → admitted', async () => expect(await judge(server, bearer(issuer.token()))).toBe('accepted'));
});

describe('flaws that depend on the key', () => {
  const flaws: readonly TokenFlaw[] = ['invalid_signature', 'key_not_usable', 'unknown_kid', 'unsupported_alg'];
  const algs = [...algorithms.keys()].filter(canVerify) as readonly TokenAlg[]; // a test below holds the two together

  it.each(algs)('%s: the token → accepted, the flaws → refused', async (alg) => {
    const other = createTestIssuer({ alg });
    const server = createResourceServer({ issuers: [other], audience, algorithms: [alg] });
    expect(await judge(server, bearer(other.token()))).toBe('accepted');
    for (const flaw of flaws) expect(await judge(server, bearer(other.flawed(flaw)))).toBe(flaw);
  });

  it.each([
    ['EdDSA', 'Ed25519'],
    ['Ed25519', 'EdDSA'],
  ] as const)('%s is allowed → a token and a proof of %s are accepted', async (allowed, alg) => {
    const other = createTestIssuer({ alg });
    const options = { algorithms: [allowed], dpop: { algorithms: [allowed] } };
    const server = createResourceServer({ issuers: [other], audience, ...options });
    const url = 'https://api.test/messages';
    expect(await judge(server, { headers: other.dpopClient({ alg }).headers({ url }) })).toBe('accepted');
  });

  it('the type has every known alg', () => {
    const named: Readonly<Record<TokenAlg, true>> = {
      RS256: true,
      RS384: true,
      RS512: true,
      PS256: true,
      PS384: true,
      PS512: true,
      ES256: true,
      ES384: true,
      ES512: true,
      EdDSA: true,
      Ed25519: true,
      'ML-DSA-44': true,
      'ML-DSA-65': true,
      'ML-DSA-87': true,
    };
    expect(Object.keys(named)).toEqual([...algorithms.keys()]);
  });
});

describe('the lists of flaws', () => {
  /** What comes of the request, of what it was sent with before, or of the server: nothing is wrong with one token or proof. */
  const others = words(`
    missing_credentials unsupported_scheme bearer_not_accepted dpop_not_accepted multiple_authorization_headers
    missing_dpop_proof bearer_with_dpop_proof bad_host_header bad_forwarded_header unbound_token_as_dpop
    missing_client_certificate client_certificate_mismatch unaccepted_client malformed_client_id malformed_jti
    inactive_token revoked_token missing_proof_nonce invalid_proof_nonce proof_before_start proof_replayed
    insufficient_scope no_accepted_scope missing_permission actor_required actor_not_allowed unaccepted_claims
    unaccepted_acr missing_auth_time authentication_too_old keys_unavailable introspection_unavailable
    replay_store_unavailable replay_store_full unexpected audit_unavailable token_lifetime_too_long
    revocation_unknown
  `);

  it('every reason of a token or a proof → a flaw', () => {
    expect([...tokenFlaws, ...proofFlaws, ...others, ...reasonsElsewhere].toSorted()).toEqual(
      Object.keys(failures).toSorted(),
    );
  });

  test('an unknown name → TypeError that lists the known ones', () => {
    // As from a test without types.
    const mistyped = 'exipred' as TokenFlaw;
    expect(() => issuer.flawed(mistyped)).toThrow(TypeError);
    expect(() => issuer.flawed(mistyped)).toThrow(/token_too_large, .*, expired, /);
    expect(() => issuer.flawed('constructor' as TokenFlaw)).toThrow(TypeError);
  });
});
