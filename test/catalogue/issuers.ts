import type { IssuerRequest, TrustedIssuer } from '../../src/index.ts';
import { createTestIssuer } from '../../src/testing/index.ts';
import { harmless, listLibraryCases, type Play } from './library-case.ts';
import type { LibraryWorld } from './library-world.ts';
import type { Api, Stage } from './stage.ts';

/** Before both issuers. */
const both =
  (make: (world: LibraryWorld) => string): Play =>
  async (stage, world) =>
    (await stage.open({ issuers: [world.issuer, world.other] })).bear(make(world));

/** Each tenant has an issuer, found by the host that was called. */
async function openTenants(stage: Stage, { issuer, other }: LibraryWorld): Promise<Api> {
  const tenants = new Map([
    ['http://one.test/messages', issuer],
    ['http://two.test/messages', other],
  ]);
  return stage.open({ issuers: { find: (_iss, { url }) => tenants.get(url) }, trustProxy: ['10.0.0.1'] });
}
const atTenant =
  (lines: readonly string[], make: (world: LibraryWorld) => string): Play =>
  async (stage, world) =>
    (await openTenants(stage, world)).call([...lines, 'Authorization', `Bearer ${make(world)}`]);

/** The issuer of each token is found by its name. */
const found =
  (
    find: (iss: string, request: IssuerRequest, world: LibraryWorld) => unknown,
    make: (world: LibraryWorld) => string = ({ issuer }) => issuer.token(),
  ): Play =>
  async (stage, world) => {
    const issuers = {
      find: (iss: string, request: IssuerRequest) => find(iss, request, world) as TrustedIssuer, // programs without types
    };
    return (await stage.open({ issuers })).bear(make(world));
  };
const directory = (iss: string, _request: IssuerRequest, { issuer, other }: LibraryWorld) =>
  [issuer, other].find((each) => each.issuer === iss);

/** A token that is admitted at the host of its tenant, then sent to another host. */
const atOtherHost: Play = async (stage, { issuer, marker }) => {
  const find = (_iss: string, { url }: IssuerRequest) => (url.startsWith('http://other.test/') ? undefined : issuer);
  const api = await stage.open({ issuers: { find } });
  const token = issuer.token({ marker });
  await api.admit(token);
  return api.call(['Host', 'other.test', 'Authorization', `Bearer ${token}`]);
};

/** Two issuers whose keys have the same `kid`. */
const sameKid =
  (make: (world: LibraryWorld) => string): Play =>
  async (stage, world) => {
    const rename = ({ issuer, jwks, kid }: LibraryWorld['issuer']): TrustedIssuer => ({
      issuer,
      keys: { keys: jwks.keys.map((jwk) => (jwk['kid'] === kid ? { ...jwk, kid: 'same' } : jwk)) },
    });
    return (await stage.open({ issuers: [rename(world.issuer), rename(world.other)] })).bear(make(world));
  };

/** Two issuers with rules that differ: the first as usual, the second with its own. */
const withRules =
  (rules: NonNullable<TrustedIssuer['rules']>, make: (world: LibraryWorld) => string): Play =>
  async (stage, world) => {
    const { other, issuer } = world;
    return (await stage.open({ issuers: [issuer, { issuer: other.issuer, keys: other.keys, rules }] })).bear(
      make(world),
    );
  };

/** A token that is admitted with some issuers, then sent with others. */
const elsewhere =
  (second: (world: LibraryWorld) => readonly TrustedIssuer[]): Play =>
  async (stage, world) => {
    const strict = second(world);
    const api = await stage.open({
      issuers: {
        find: (iss, { headers }) =>
          (headers.get('host') === 'strict.test' ? strict : [world.issuer]).find((each) => each.issuer === iss),
      },
    });
    const token = world.issuer.token({ marker: world.marker });
    await api.admit(token);
    return api.call(['Host', 'strict.test', 'Authorization', `Bearer ${token}`]);
  };

/** Attacks where several issuers are trusted, or are found for each request. */
export const issuers = listLibraryCases([
  {
    attack: 'issuer that signs for another',
    source: 'RFC 8725 §3.8, §3.10, RFC 9068 §4',
    cases: [
      [
        'iss of the one, key and kid of the other',
        both(({ issuer, other }) => other.token({ iss: issuer.issuer })),
        'unknown_kid',
      ],
      [
        'iss and kid of the one, key of the other',
        both(({ issuer, other }) => other.token({ iss: issuer.issuer }, { kid: issuer.kid })),
        'invalid_signature',
      ],
      [
        'the same kid at both, key of the other',
        sameKid(({ issuer, other }) => other.token({ iss: issuer.issuer }, { kid: 'same' })),
        'invalid_signature',
      ],
      [
        'iss of the one in the header',
        both(({ issuer, other }) => other.token({ iss: 'https://evil.test/' }, { iss: issuer.issuer })),
        'invalid_issuer',
      ],
    ],
  },
  {
    attack: 'issuer that is none of those trusted',
    source: 'RFC 8725 §3.8, RFC 9207 §1',
    reason: 'invalid_issuer',
    cases: [
      ...['https://evil.test/', 'https://issuer.test', 'https://ISSUER.test/', '__proto__', null].map(
        (iss) => [`iss ${JSON.stringify(iss)}`, both(({ issuer }) => issuer.token({ iss }))] as const,
      ),
      ['iss absent', both(({ issuer }) => issuer.token({ iss: undefined }))],
      ['iss a list of both', both(({ issuer, other }) => issuer.token({ iss: [issuer.issuer, other.issuer] }))],
    ],
  },
  {
    attack: 'token that chooses who is trusted',
    source: 'RFC 8725 §3.8, §3.10, RFC 9700 §4.4',
    reason: 'invalid_issuer',
    cases: [
      ['token of a tenant at another', atTenant(['Host', 'two.test'], ({ issuer }) => issuer.token())],
      [
        'host of a tenant in X-Forwarded-Host, by nobody trusted',
        atTenant(['Host', 'two.test', 'X-Forwarded-Host', 'one.test'], ({ issuer }) => issuer.token()),
      ],
      [
        'host of a tenant in Forwarded',
        atTenant(['Host', 'two.test', 'Forwarded', 'host=one.test'], ({ issuer }) => issuer.token()),
      ],
      [
        'host of a tenant in X-Original-URL',
        atTenant(['Host', 'two.test', 'X-Original-URL', 'http://one.test/messages'], ({ issuer }) => issuer.token()),
      ],
      ['host with a port', atTenant(['Host', 'one.test:81'], ({ issuer }) => issuer.token())],
      [
        'two hosts',
        atTenant(['Host', 'two.test', 'Host', 'one.test'], ({ issuer }) => issuer.token()),
        'bad_host_header',
      ],
      [
        'host with user information',
        atTenant(['Host', 'one.test@two.test'], ({ issuer }) => issuer.token()),
        'bad_host_header',
      ],
    ],
  },
  {
    attack: 'rules of one issuer for the token of another',
    source: 'RFC 8725 §3.1, §3.9, RFC 9068 §4',
    cases: [
      [
        'audience that only the one accepts',
        withRules({ audience: 'https://two.test/' }, ({ issuer }) => issuer.token({ aud: 'https://two.test/' })),
        'invalid_audience',
      ],
      [
        'algorithm that only the other allows',
        withRules({ algorithms: ['RS256', 'PS256'] }, ({ issuer }) => issuer.token({}, { alg: 'PS256' })),
        'unsupported_alg',
      ],
      [
        'policy that only the other asks',
        withRules({ policy: { scopes: ['admin'] } }, ({ other }) => other.token({ scope: 'read:messages' })),
        'insufficient_scope',
      ],
      [
        'tolerance that the one has',
        withRules({ clockTolerance: 0 }, ({ other }) => other.token({ exp: Math.floor(Date.now() / 1000) - 1 })),
        'expired',
      ],
    ],
  },
  {
    attack: 'cached token that other rules admitted',
    source: 'RFC 8725 §3.8, §3.9',
    cases: [
      ['where its issuer is not trusted', elsewhere(({ other }) => [other]), 'invalid_issuer'],
      ['where nobody is', elsewhere(() => []), 'invalid_issuer'],
      [
        'where its issuer has another audience',
        elsewhere(({ issuer: { issuer, keys } }) => [{ issuer, keys, rules: { audience: 'https://two.test/' } }]),
        'invalid_audience',
      ],
      [
        'where its issuer has other algorithms',
        elsewhere(({ issuer: { issuer, keys } }) => [{ issuer, keys, rules: { algorithms: ['ES256'] } }]),
        'unsupported_alg',
      ],
      [
        'where its issuer has other keys',
        elsewhere(({ issuer: { issuer }, other: { keys } }) => [{ issuer, keys }]),
        'unknown_kid',
      ],
      [
        'where its issuer has a policy',
        elsewhere(({ issuer: { issuer, keys } }) => [{ issuer, keys, rules: { policy: { scopes: ['admin'] } } }]),
        'insufficient_scope',
      ],
    ],
  },
  {
    attack: 'name in a token that is used before the token is verified',
    source: 'RFC 8725 §3.8, §3.10',
    reason: 'invalid_issuer',
    cases: [
      ['unknown name', found(() => undefined)],
      [
        'iss of the one, signed by the other',
        found(directory, ({ issuer, other }) => other.token({ iss: issuer.issuer })),
        'unknown_kid',
      ],
      [
        'iss and kid of the one, key of the other',
        found(directory, ({ issuer, other }) => other.token({ iss: issuer.issuer }, { kid: issuer.kid })),
        'invalid_signature',
      ],
      ...['__proto__', 'constructor', '', 'https://issuer.test/\u0000'].map(
        (iss) => [`iss ${JSON.stringify(iss)}`, found(directory, ({ issuer }) => issuer.token({ iss }))] as const,
      ),
      ['verified at the host of its tenant, then sent to another', atOtherHost],
    ],
  },
  {
    attack: 'find that fails: no client is admitted',
    source: 'CWE-636, RFC 9110 §15.6.1',
    status: 500,
    reason: 'unexpected',
    cases: [
      [
        'find throws',
        found(() => {
          throw new Error('The directory of tenants is gone.');
        }),
      ],
    ],
  },
  {
    attack: 'harm to tokens that are good',
    source: 'RFC 9068 §4',
    ...harmless,
    cases: [
      ['of the one', both(({ issuer }) => issuer.token())],
      ['of the one, found by its name', found(directory)],
      ['of the other', both(({ other }) => other.token())],
      ['at their own tenant', atTenant(['Host', 'one.test'], ({ issuer }) => issuer.token())],
      ['the same kid at both', sameKid(({ other }) => other.token({}, { kid: 'same' }))],
      [
        'an issuer that is trusted by a text that is no URL',
        async (stage) => {
          const odd = createTestIssuer({ issuer: '__proto__', alg: 'ES256' });
          return (await stage.open({ issuers: [odd], algorithms: ['ES256'] })).bear(odd.token());
        },
      ],
    ],
  },
]);
