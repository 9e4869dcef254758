import { describe, expect, it, vi } from 'vitest';
import type { JsonObject } from '../../../src/core/jose/json.ts';
import { createDiscovery, type Discover, type DiscoveryFallback } from '../../../src/core/keys/discovery.ts';
import type { FetchJson } from '../../../src/core/outbound/outbound.ts';
import { ProviderError } from '../../../src/core/outbound/provider-error.ts';
import { words } from '../../support/words.ts';

const issuer = 'https://idp.example.test/';
const jwksUri = 'https://keys.example.test/set';
const wellKnownKeys = 'https://idp.example.test/.well-known/jwks.json';
const document = { issuer, jwks_uri: jwksUri };

/** Answers with one document after the other; an error in its place is thrown. */
function answering(...answers: readonly (JsonObject | Error)[]) {
  const left = [...answers];
  return vi.fn<FetchJson>(async () => {
    const answer = left.shift();
    if (answer === undefined || answer instanceof Error) throw answer ?? new Error('There are no more answers.');
    return { status: 200, value: answer, maxAge: undefined };
  });
}

/** The address that a discovery finds. */
const addressOf = async (discover: Discover): Promise<string> => (await discover(2)).address;

function discovery(fetchJson: FetchJson, fallback: DiscoveryFallback = 'well-known') {
  return createDiscovery({ issuer, fallback, fetchJson });
}

describe('discovery', () => {
  it.each([
    [issuer, 'https://idp.example.test/.well-known/openid-configuration'],
    ['https://idp.example.test', 'https://idp.example.test/.well-known/openid-configuration'],
    ['https://idp.example.test/realms/a', 'https://idp.example.test/realms/a/.well-known/openid-configuration'],
  ])('the document of %s is at %s', async (each, url) => {
    const fetchJson = answering({ issuer: each, jwks_uri: jwksUri });
    const discover = createDiscovery({ issuer: each, fallback: 'none', fetchJson });
    expect(await addressOf(discover)).toBe(jwksUri);
    expect(fetchJson).toHaveBeenCalledExactlyOnceWith(url, { timeoutSeconds: 2, maxBytes: 262_144 });
  });

  it.each<[string, unknown]>([
    ['absent', undefined],
    ['without its trailing slash', 'https://idp.example.test'],
    ['in another case', 'https://IDP.example.test/'],
    ['of another provider', 'https://other.example.test/'],
    ['a list', [issuer]],
  ])('an issuer that is %s → foreign_issuer, whatever the fallback', async (_, foreign) => {
    const discover = discovery(answering(document, { ...document, issuer: foreign }));
    await discover(2);
    await expect(discover(2)).rejects.toMatchObject({ kind: 'foreign_issuer' });
  });

  it.each<[string, unknown]>([
    ['absent', undefined],
    ['a list', [jwksUri]],
    ['http', 'http://keys.example.test/set'],
    ['relative', '/set'],
    ['no URL', 'https://'],
    ['with a user', 'https://user@keys.example.test/set'],
    ['with a password', 'https://:s3cret@keys.example.test/set'],
    ['with a fragment', 'https://keys.example.test/set#one'],
  ])('a jwks_uri that is %s → bad_jwks_uri, whatever the fallback', async (_, bad) => {
    const discover = discovery(answering({ ...document, jwks_uri: bad }));
    await expect(discover(2)).rejects.toMatchObject({ kind: 'bad_jwks_uri' });
  });

  it('no response → the well-known key set', async () =>
    expect(await discovery(answering(new ProviderError('timeout')))(2)).toMatchObject({
      address: wellKnownKeys,
      failure: { kind: 'timeout' },
    }));

  it('no response and no fallback → its error', async () => {
    const error = new ProviderError('network');
    await expect(discovery(answering(error), 'none')(2)).rejects.toBe(error);
  });

  it.each<DiscoveryFallback>(['well-known', 'none'])(
    'no response after an earlier one → the earlier jwks_uri (fallback %s)',
    async (fallback) => {
      const discover = discovery(answering(document, new ProviderError('status')), fallback);
      await discover(2);
      expect(await addressOf(discover)).toBe(jwksUri);
    },
  );

  it('a jwks_uri that has moved → the new one', async () => {
    const moved = 'https://keys.example.test/moved';
    const discover = discovery(answering(document, { ...document, jwks_uri: moved }));
    await discover(2);
    expect(await addressOf(discover)).toBe(moved);
  });

  it.each(
    words(`
      http://idp.example.test/ idp.example.test https:// https://user:s3cret@idp.example.test/
      https://idp.example.test/?a=1 https://idp.example.test/#a
    `),
  )('the issuer %s → TypeError that does not repeat it', (bad) => {
    const create = () => createDiscovery({ issuer: bad, fallback: 'none', fetchJson: answering() });
    expect(create).toThrow(
      new TypeError('issuer: it is not a plain https URL; a provider without TLS needs insecure: true'),
    );
  });
});
