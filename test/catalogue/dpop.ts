import { randomUUID } from 'node:crypto';
import { makeProofKey, type ProofChanges, privateJwk, thumbprintOf } from '../support/proofs.ts';
import { listCases, type Make, type Sent } from './row.ts';
import type { TokenDraft, World } from './world.ts';

const call =
  (changes: ProofChanges | ((world: World) => ProofChanges), draft: TokenDraft = {}): Make =>
  (world) => ({ headers: world.dpop(typeof changes === 'function' ? changes(world) : changes, draft) });
const header = (members: Readonly<Record<string, unknown>>): Make => call({ header: members });
const claims = (members: Readonly<Record<string, unknown>>): Make => call({ claims: members });
const jwk = (members: Readonly<Record<string, unknown>>): Make =>
  call(({ proofKey }) => ({ header: { jwk: { ...proofKey.jwk, ...members } } }));
/** The sent proof, with changes. */
const finish =
  (change: (proof: string, world: World) => string): Make =>
  (world) => {
    const headers = world.dpop();
    return { headers: headers.with(3, change(headers[3] ?? '', world)) };
  };
const when = (seconds: number): Make => call(({ now }) => ({ claims: { iat: now() + seconds } }));
const htu = (change: (url: string, world: World) => unknown): Make =>
  call((world) => ({ claims: { htu: change(`${world.url}/api/private`, world) } }));

const rsaKey = makeProofKey('RS256');
const edKey = makeProofKey('EdDSA');
const otherKey = makeProofKey();
const boundTo = ({ jwk: key }: { readonly jwk: Readonly<Record<string, unknown>> }): TokenDraft => ({
  claims: { cnf: { jkt: thumbprintOf(key) } },
});
const values: readonly unknown[] = [null, true, 1, '', [], {}];
const typesOf = (name: string, good: readonly unknown[] = []) => [
  ...values
    .filter((value) => !good.includes(value))
    .map((value) => [`${name} ${JSON.stringify(value)}`, claims({ [name]: value })] as const),
  [`${name} absent`, claims({ [name]: undefined })] as const,
];

function withHeaders(change: (headers: readonly string[], world: World) => readonly string[]): Make {
  return (world): Sent => ({ headers: change(world.dpop(), world) });
}

/** Attacks on sender-constrained tokens. */
export const dpop = listCases([
  {
    attack: 'stolen bound token',
    source: 'RFC 9449 §7.1, §7.2',
    reason: 'proof_key_mismatch',
    cases: [
      ['proof by a key of the thief', call({ key: otherKey })],
      ['bound token as Bearer', ({ mint, proofKey }) => mint(boundTo(proofKey)), 'bound_token_as_bearer'],
      [
        'as Bearer, the proof beside it',
        withHeaders(([name = '', value = '', ...proof]) => [name, value.replace('DPoP', 'Bearer'), ...proof]),
        'bearer_with_dpop_proof',
      ],
      ['without a proof', withHeaders((headers) => headers.slice(0, 2)), 'missing_dpop_proof'],
      ['with an empty proof', withHeaders((headers) => headers.with(3, '')), 'malformed_proof'],
      ['public key of the victim, signature of the thief', call({ signer: otherKey }), 'invalid_proof_signature'],
      ['free token under DPoP', call({}, { claims: { cnf: undefined } }), 'unbound_token_as_dpop'],
      ['cnf empty under DPoP', call({}, { claims: { cnf: {} } }), 'unsupported_cnf'],
      [
        'bound to another key, with an unregistered member',
        call({}, { claims: { cnf: { jkt: thumbprintOf(otherKey.jwk), 'kc-jkt-type': 'DPoP' } } }),
      ],
      ['bound to another key', call({}, boundTo(otherKey))],
      ['expired bound token, good proof', call({}, { claims: { exp: 1 } }), 'expired'],
      [
        'forged bound token, good proof',
        ({ dpop: make, foreign, keys }) => ({ headers: make({}, { key: { ...foreign, kid: keys.rsa.kid } }) }),
        'invalid_signature',
      ],
      [
        'access token as its own proof',
        ({ mint, proofKey }) => {
          const token = mint(boundTo(proofKey));
          return { headers: ['Authorization', `DPoP ${token}`, 'DPoP', token] };
        },
        'unsupported_proof_typ',
      ],
      [
        'proof as its own access token',
        withHeaders(([, , name = '', proof = '']) => ['Authorization', `DPoP ${proof}`, name, proof]),
        'unsupported_alg',
      ],
    ],
  },
  {
    attack: 'stolen proof for another call',
    source: 'RFC 9449 §4.3, §11.1',
    reason: 'proof_url_mismatch',
    cases: [
      ['htm POST', claims({ htm: 'POST' }), 'proof_method_mismatch'],
      ['htm in lower case', claims({ htm: 'get' }), 'proof_method_mismatch'],
      ['htm with a space', claims({ htm: 'GET ' }), 'proof_method_mismatch'],
      ['htm of HEAD', claims({ htm: 'HEAD' }), 'proof_method_mismatch'],
      ['htm *', claims({ htm: '*' }), 'proof_method_mismatch'],
      ['htu of another endpoint', htu((url) => url.replace('private', 'profile'))],
      ['htu of another host', htu((url) => url.replace('127.0.0.1', 'other.example.test'))],
      ['htu of another port', htu((url) => url.replace(/:\d+\//, ':1/'))],
      ['htu with https', htu((url) => url.replace('http:', 'https:'))],
      ['htu with user information', htu((url) => url.replace('//', '//user@'))],
      ['htu as a prefix', htu((url) => url.slice(0, -1))],
      ['htu with more behind', htu((url) => `${url}x`)],
      ['htu with a slash behind', htu((url) => `${url}/`)],
      ['htu with an inner slash doubled', htu((url) => url.replace('/api/', '/api//'))],
      ['htu with an encoded slash', htu((url) => url.replace('/private', '%2fprivate'))],
      ['htu twice encoded', htu((url) => url.replace('private', '%2570rivate'))],
      ['htu with another path in dot segments', htu((url) => `${url}/../public`)],
      ['htu with backslashes', htu((url) => url.replace('/api/', '\\api\\'))],
      ['htu with a bad escape', htu((url) => `${url}%zz`)],
      ['htu with a space behind', htu((url) => `${url} `)],
      ['htu with a line feed', htu((url) => `${url}\n`)],
      ['htu with a NUL', htu((url) => `${url}\0`)],
      ['htu with a path parameter', htu((url) => `${url};x`)],
      ['htu in upper case', htu((url) => url.toUpperCase())],
      ['htu only the path', htu(() => '/api/private')],
      ['htu without its scheme', htu((url) => url.slice(5))],
      ['htu empty', claims({ htu: '' })],
      ['htu of a host that starts alike', htu((url) => url.replace('127.0.0.1', '127.0.0.1.evil.example'))],
      ['htu with the host as user information', htu((url) => url.replace('127.0.0.1', '127.0.0.1@evil.example'))],
      ['htu with a dot behind the host', htu((url) => url.replace('127.0.0.1', '127.0.0.1.'))],
      ['htu without its path', htu((url) => new URL(url).origin)],
      ['htu with the host in decimal', htu((url) => url.replace('127.0.0.1', '2130706433'))],
      ['ath of another token', claims({ ath: 'A'.repeat(43) }), 'proof_token_mismatch'],
      ['ath empty', claims({ ath: '' }), 'proof_token_mismatch'],
      ['ath padded', call(({ dpop: make }) => ({ claims: { ath: `${readAth(make())}=` } })), 'proof_token_mismatch'],
      ['iat 301 s ago', when(-301), 'proof_too_old'],
      ['iat a day ago', when(-86_400), 'proof_too_old'],
      ['iat in milliseconds', call(({ now }) => ({ claims: { iat: now() * 1000 } })), 'malformed_proof_claims'],
      ['iat 40 s ahead', when(40), 'proof_in_future'],
      ['iat 1e15', claims({ iat: 1e15 }), 'malformed_proof_claims'],
    ],
  },
  {
    attack: 'malformed proof',
    source: 'RFC 9449 §4.2, §4.3 (2), (3)',
    reason: 'malformed_proof_claims',
    cases: [
      ...typesOf('jti'),
      ['jti of 257 characters', claims({ jti: 'x'.repeat(257) })],
      ...typesOf('htm', ['']),
      ...typesOf('htu', ['']),
      ...typesOf('iat', [1]),
      ['iat as text', call(({ now }) => ({ claims: { iat: String(now()) } }))],
      ['iat negative', claims({ iat: -1 })],
      ['iat 1e400', call({ claimsText: '{"jti":"a","htm":"GET","htu":"x","iat":1e400,"ath":"x"}' })],
      ...typesOf('ath', ['']),
      ['nonce a number', claims({ nonce: 1 })],
      ['claims empty', call({ claimsText: '{}' })],
      ['claims a list', call({ claimsText: '[]' }), 'malformed_proof'],
      ['claims no JSON', call({ claimsText: 'x' }), 'malformed_proof'],
      ['jti twice', call({ claimsText: '{"jti":"a","jti":"b"}' }), 'malformed_proof'],
      ['claims nested 21 deep', call({ claimsText: `{"x":${'['.repeat(20)}${']'.repeat(20)}}` }), 'malformed_proof'],
      ['garbage', finish(() => 'garbage'), 'malformed_proof'],
      ['five parts', finish((proof) => `${proof}.AA.AA`), 'malformed_proof'],
      ['padding', finish((proof) => `${proof}=`), 'malformed_proof'],
      ['white space', finish((proof) => proof.replace('.', ' .')), 'malformed_proof'],
      ['signature cut off', finish((proof) => proof.slice(0, proof.lastIndexOf('.') + 1)), 'malformed_proof'],
      ['over 12 KiB', claims({ filling: 'x'.repeat(12_288) }), 'proof_too_large'],
      [
        'two headers',
        withHeaders((headers, { dpop: make }) => [...headers, ...make().slice(2)]),
        'multiple_dpop_proofs',
      ],
      ['two headers, the same', withHeaders((headers) => [...headers, ...headers.slice(2)]), 'multiple_dpop_proofs'],
      ['two proofs in one header', finish((proof) => `${proof}, ${proof}`), 'multiple_dpop_proofs'],
      ['a comma behind', finish((proof) => `${proof},`), 'multiple_dpop_proofs'],
    ],
  },
  {
    attack: 'JOSE header of a proof',
    source: 'RFC 9449 §4.3 (4)–(7), RFC 8725 §3.1',
    reason: 'unsupported_proof_alg',
    cases: [
      ...['none', 'None', 'HS256', 'RS256', 'ES384', 'EdDSA', 'es256', ''].map(
        (alg) => [`alg ${JSON.stringify(alg)}`, call({ header: { alg }, signAs: 'ES256' })] as const,
      ),
      ...[null, 1, ['ES256']].map(
        (alg) => [`alg ${JSON.stringify(alg)}`, call({ header: { alg }, signAs: 'ES256' })] as const,
      ),
      [
        'alg twice',
        call(({ proofKey }) => ({
          headerText: `{"typ":"dpop+jwt","alg":"none","alg":"ES256","jwk":${JSON.stringify(proofKey.jwk)}}`,
          signAs: 'ES256',
        })),
        'malformed_proof',
      ],
      ...['JWT', 'at+jwt', 'DPOP+JWT', 'application/dpop+jwt', 'dpop+jwt ', ''].map(
        (typ) => [`typ ${JSON.stringify(typ)}`, header({ typ }), 'unsupported_proof_typ'] as const,
      ),
      ['typ absent', header({ typ: undefined }), 'unsupported_proof_typ'],
      ['typ a list', header({ typ: ['dpop+jwt'] }), 'unsupported_proof_typ'],
      ['crit', header({ crit: ['b64'], b64: true }), 'unsupported_proof_header'],
      ['b64 false', header({ b64: false }), 'unsupported_proof_header'],
      ['zip', header({ zip: 'DEF' }), 'unsupported_proof_header'],
      ['jwk absent', header({ jwk: undefined }), 'malformed_proof_jwk'],
      ['jwk null', header({ jwk: null }), 'malformed_proof_jwk'],
      ['jwk a list', call(({ proofKey }) => ({ header: { jwk: [proofKey.jwk] } })), 'malformed_proof_jwk'],
      [
        'jwk as text',
        call(({ proofKey }) => ({ header: { jwk: JSON.stringify(proofKey.jwk) } })),
        'malformed_proof_jwk',
      ],
      [
        'jwk with the private key',
        call(({ proofKey }) => ({ header: { jwk: privateJwk(proofKey) } })),
        'private_proof_jwk',
      ],
      ['jwk with d null', jwk({ d: null }), 'private_proof_jwk'],
      ['jwk symmetric', header({ jwk: { kty: 'oct', k: 'AAAA' } }), 'private_proof_jwk'],
      [
        'jwk of RSA under ES256',
        call({ key: rsaKey, header: { alg: 'ES256' }, signAs: 'RS256' }, boundTo(rsaKey)),
        'malformed_proof_jwk',
      ],
      [
        'jwk of Ed25519 under ES256',
        call({ key: edKey, header: { alg: 'ES256' }, signAs: 'EdDSA' }, boundTo(edKey)),
        'malformed_proof_jwk',
      ],
      ['jwk of another alg', jwk({ alg: 'ES384' }), 'malformed_proof_jwk'],
      ['jwk without y', jwk({ y: undefined }), 'proof_key_mismatch'],
      ['jwk with x a number', jwk({ x: 1 }), 'proof_key_mismatch'],
      [
        'jwk with x padded',
        call(({ proofKey }) => ({ header: { jwk: { ...proofKey.jwk, x: `${String(proofKey.jwk['x'])}=` } } })),
        'proof_key_mismatch',
      ],
      [
        'jku to the decoy, jwk of the thief',
        call(({ decoy }) => ({ key: otherKey, header: { jku: decoy.url } })),
        'proof_key_mismatch',
      ],
      [
        'x5u to the decoy, jwk absent',
        call(({ decoy }) => ({ header: { x5u: decoy.url, jwk: undefined } })),
        'malformed_proof_jwk',
      ],
      ['a point that is on no curve, bound to it', offCurve(), 'malformed_proof_jwk'],
    ],
  },
]);

function readAth(headers: readonly string[]): string {
  const payload = headers[3]?.split('.')[1] ?? '';
  return String(JSON.parse(Buffer.from(payload, 'base64url').toString()).ath);
}

/** The provider bound the token to an invalid key. */
function offCurve(): Make {
  return ({ dpop: make, proofKey }) => {
    const broken = { ...proofKey.jwk, y: proofKey.jwk['x'] };
    return { headers: make({ header: { jwk: broken }, claims: { jti: randomUUID() } }, boundTo({ jwk: broken })) };
  };
}
