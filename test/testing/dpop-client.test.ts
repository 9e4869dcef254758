import { describe, expect, it, test } from 'vitest';
import { createNonces } from '../../src/core/dpop/nonce.ts';
import { canVerify, proofAlgorithms } from '../../src/core/jose/jws.ts';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { createTestIssuer, type ProofAlg, type ProofFlaw, proofFlaws } from '../../src/testing/index.ts';
import { judge } from './judge.ts';

const algs: readonly ProofAlg[] = proofAlgorithms.filter(canVerify);
const url = 'https://api.test/messages';
const issuer = createTestIssuer();
const { audience } = issuer;
const createServer = (dpop = {}) => createResourceServer({ issuers: [issuer], audience, dpop });

describe.each(algs)('a client with %s', (alg) => {
  const client = issuer.dpopClient({ alg });
  const server = createServer({ mode: 'required', algorithms: [alg] });

  it('a valid proof → admitted', async () =>
    expect(await judge(server, { headers: client.headers({ url }) })).toBe('accepted'));

  it.each(proofFlaws)('a proof flawed by %s → that reason', async (flaw) =>
    expect(await judge(server, { headers: client.headers({ url, flaw }) })).toBe(flaw),
  );
});

describe('a client', () => {
  const client = issuer.dpopClient();
  const server = createServer();

  it('default → ES256', async () => {
    expect(client.jwk).toMatchObject({ kty: 'EC', crv: 'P-256' });
    expect(await judge(server, { headers: client.headers({ url }) })).toBe('accepted');
  });

  it('its tokens → bound to its key only', async () => {
    const token = client.token();
    expect(await judge(server, { headers: { authorization: `Bearer ${token}` } })).toBe('bound_token_as_bearer');
    const thief = issuer.dpopClient();
    expect(thief.jkt).not.toBe(client.jkt);
    expect(await judge(server, { headers: thief.headers({ url, token }) })).toBe('proof_key_mismatch');
    expect(await judge(server, { headers: client.headers({ url, token }) })).toBe('accepted');
  });

  it('method and URL → in the proof, without query and fragment', async () => {
    const call = { method: 'POST', url: `${url}?page=2#top` };
    expect(await judge(server, { ...call, headers: client.headers(call) })).toBe('accepted');
    expect(await judge(server, { ...call, headers: client.headers({ url: call.url }) })).toBe('proof_method_mismatch');
    const address = new URL(call.url);
    expect(await judge(server, { url: call.url, headers: client.headers({ url: address }) })).toBe('accepted');
  });

  it('a token from another source → a proof for it', async () => {
    const token = client.token({ sub: 'alice' });
    const dpop = client.proof({ url, token });
    expect(await judge(server, { headers: { authorization: `DPoP ${token}`, dpop } })).toBe('accepted');
    const other = client.proof({ url, token: client.token() });
    expect(await judge(server, { headers: { authorization: `DPoP ${token}`, dpop: other } })).toBe(
      'proof_token_mismatch',
    );
  });

  it('nonce → in the proof', async () => {
    const nonces = createNonces({ secret: 'a secret of thirty-two bytes, or more' });
    const strict = createServer({ nonces });
    const nonce = nonces.issue(Date.now() / 1000);
    expect(await judge(strict, { headers: client.headers({ url }) })).toBe('missing_proof_nonce');
    expect(await judge(strict, { headers: client.headers({ url, nonce: 'stale' }) })).toBe('invalid_proof_nonce');
    expect(await judge(strict, { headers: client.headers({ url, nonce }) })).toBe('accepted');
  });

  it('the clock of its issuer → iat', async () => {
    const now = () => 1_000_000_000;
    const past = createTestIssuer({ now });
    const then = createResourceServer({ issuers: [past], audience, now });
    expect(await judge(then, { headers: past.dpopClient().headers({ url }) })).toBe('accepted');
  });

  test('an unknown flaw → TypeError that lists the known ones', () =>
    expect(() => client.headers({ url, flaw: 'expired' as ProofFlaw })).toThrow(/^flaw: .*proof_too_old, /));

  it.each(['/messages', 'api.test', ''])('%j, not an absolute URL → TypeError that states the fix', (part) =>
    expect(() => client.headers({ url: part })).toThrow(/^url: write the absolute URL of the request/),
  );
});
