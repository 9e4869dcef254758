import { listLibraryCases, type Play } from './library-case.ts';

type Members = Readonly<Record<string, unknown>>;

/** A token for an API that requires the profile. */
const strict =
  (claims: Members, header: Members = {}): Play =>
  async (stage, { issuer, marker }) =>
    (await stage.open({ profile: 'rfc9068' })).bear(issuer.token({ marker, ...claims }, header));

const wrongTypes: Readonly<Record<string, unknown>> = { absent: undefined, 'a number': 1, 'a list': ['x'] };

/** Attacks on what is told apart only by the profile of RFC 9068. */
export const profile = listLibraryCases([
  {
    attack: 'token of another kind',
    source: 'RFC 9068 §2.1, §4, RFC 8725 §3.11',
    reason: 'unsupported_typ',
    cases: [
      ...[undefined, null, 'JWT', 'at+jwt ', 'id+jwt', 'application/application/at+jwt', 'at+\u017fwt', ['at+jwt']].map(
        (typ) => [`typ ${JSON.stringify(typ) ?? 'absent'}`, strict({}, { typ })] as const,
      ),
      ['ID token with the audience of the API', strict({ nonce: 'n', at_hash: 'x', auth_time: 1 }, { typ: 'JWT' })],
      ['ID token without typ', strict({ nonce: 'n', azp: 'test-client' }, { typ: undefined })],
      [
        'typ JWT, let in before where the profile is not asked',
        async (stage, { issuer, marker }) => {
          const lax = { issuer: issuer.issuer, keys: issuer.keys };
          const demanding = { ...lax, rules: { profile: 'rfc9068' as const } };
          const api = await stage.open({
            issuers: { find: (_iss, { headers }) => (headers.get('host') === 'strict.test' ? demanding : lax) },
          });
          const token = issuer.token({ marker }, { typ: 'JWT' });
          await api.admit(token);
          return api.call(['Host', 'strict.test', 'Authorization', `Bearer ${token}`]);
        },
      ],
    ],
  },
  {
    attack: 'ID token made an access token',
    source: 'RFC 9068 §4, RFC 7515 §5.2',
    cases: [
      [
        'typ changed',
        async (stage, { issuer, marker }) => {
          const [header = '', claims, signature] = issuer.token({ nonce: 'n', marker }, { typ: 'JWT' }).split('.');
          const changed = Buffer.from(header, 'base64url').toString().replace('"JWT"', '"at+jwt"');
          const api = await stage.open({ profile: 'rfc9068' });
          return api.bear(`${Buffer.from(changed).toString('base64url')}.${claims}.${signature}`);
        },
        'invalid_signature',
      ],
      ['for the client', strict({ aud: 'test-client' }), 'invalid_audience'],
      [
        'without client_id, azp in its place',
        strict({ client_id: undefined, azp: 'test-client' }),
        'malformed_client_id',
      ],
      ['without jti, uti in its place', strict({ jti: undefined, uti: 'x' }), 'malformed_jti'],
    ],
  },
  {
    attack: 'claim that the profile requires',
    source: 'RFC 9068 §2.2, §4',
    cases: [
      ...(['sub', 'client_id', 'jti'] as const).flatMap((claim) =>
        Object.entries(wrongTypes).map(
          ([type, value]) => [`${claim} ${type}`, strict({ [claim]: value }), `malformed_${claim}`] as const,
        ),
      ),
      ['sub in other case', strict({ sub: undefined, Sub: 'alice' }), 'malformed_sub'],
    ],
  },
]);
