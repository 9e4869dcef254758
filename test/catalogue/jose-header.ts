import { createHmac, type KeyObject } from 'node:crypto';
import { signBytes } from '../../src/core/jose/sign.ts';
import { thumbprintOf } from '../support/proofs.ts';
import { listCases, type Make } from './row.ts';
import type { TokenDraft, World } from './world.ts';

const header =
  (members: Readonly<Record<string, unknown>>): Make =>
  ({ mint }) =>
    mint({ header: members });
const unsigned =
  (alg: unknown): Make =>
  ({ mint }) =>
    mint({ header: { alg }, finish: (token) => token.slice(0, token.lastIndexOf('.') + 1) });

/** The public key in every form that a verifier may hold, and take for a shared secret. */
const secrets: Readonly<Record<string, (world: World) => string | Buffer>> = {
  'SPKI PEM': ({ keys }) => keys.rsa.publicKey.export({ type: 'spki', format: 'pem' }),
  'SPKI PEM without its last line feed': ({ keys }) =>
    keys.rsa.publicKey.export({ type: 'spki', format: 'pem' }).toString().trimEnd(),
  'SPKI PEM with CR LF': ({ keys }) =>
    keys.rsa.publicKey.export({ type: 'spki', format: 'pem' }).toString().replaceAll('\n', '\r\n'),
  'base64 of the SPKI DER': ({ keys }) => keys.rsa.publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
  'PKCS #1 PEM': ({ keys }) => keys.rsa.publicKey.export({ type: 'pkcs1', format: 'pem' }),
  'SPKI DER': ({ keys }) => keys.rsa.publicKey.export({ type: 'spki', format: 'der' }),
  'PKCS #1 DER': ({ keys }) => keys.rsa.publicKey.export({ type: 'pkcs1', format: 'der' }),
  'JWK as JSON': ({ keys }) => JSON.stringify(keys.rsa.jwk),
  'JWK set as JSON': ({ keys }) => JSON.stringify({ keys: [keys.rsa.jwk] }),
  'JWK thumbprint': ({ keys }) => thumbprintOf(keys.rsa.jwk),
  'modulus as text': ({ keys }) => String(keys.rsa.jwk['n']),
  'modulus as bytes': ({ keys }) => Buffer.from(String(keys.rsa.jwk['n']), 'base64url'),
  kid: ({ keys }) => keys.rsa.kid,
  'certificate authority of the provider': ({ provider }) => provider.ca,
  'nothing at all': () => '',
};
const hmac = (alg: string, secret: (world: World) => string | Buffer): Make => {
  const digest = alg.replace('HS', 'sha').toLowerCase();
  return (world) =>
    world.mint({ header: { alg }, sign: (input) => createHmac(digest, secret(world)).update(input).digest() });
};

/** Signed by the key of an attacker that the header brings along. */
const bring =
  (members: (world: World) => Readonly<Record<string, unknown>>, draft: TokenDraft = {}): Make =>
  (world) =>
    world.mint({ header: members(world), sign: (input) => signBytes(input, world.foreign), ...draft });

const otherKey =
  (alg: string, name: 'rsa' | 'ec' | 'ed', named: 'rsa' | 'ec' | 'ed' = name): Make =>
  ({ mint, keys }) =>
    mint({ key: keys[name], header: { alg, kid: keys[named].kid } });

/** Attacks by what the JOSE header says of algorithm and key. */
export const joseHeader = listCases([
  {
    attack: 'unsecured token',
    source: 'RFC 8725 §3.1, CVE-2022-23540',
    reason: 'unsupported_alg',
    cases: [
      ...['none', 'None', 'NONE', 'nOnE', ' none', 'none ', 'none\0', 'n\u043ene', 'NONE\t'].map(
        (alg) => [`alg ${JSON.stringify(alg)} with a signature`, header({ alg })] as const,
      ),
      ['alg none without a signature', unsigned('none'), 'malformed_token'],
      ['alg RS256 without a signature', unsigned('RS256'), 'malformed_token'],
    ],
  },
  {
    attack: 'public key as a shared secret',
    source: 'RFC 8725 §2.1, CVE-2015-9235, CVE-2016-10555',
    reason: 'unsupported_alg',
    cases: Object.entries(secrets).flatMap(([form, secret]) =>
      ['HS256', 'HS384', 'HS512'].map((alg) => [`${alg}: ${form}`, hmac(alg, secret)] as const),
    ),
  },
  {
    attack: 'another algorithm than the one allowed',
    source: 'RFC 8725 §3.1',
    reason: 'unsupported_alg',
    cases: [
      ...['RS384', 'RS512', 'PS256', 'ES256', 'ES256K', 'EdDSA', 'Ed25519', 'RS1', 'rs256', 'RS256 ', 'RSA'].map(
        (alg) => [`alg ${JSON.stringify(alg)}`, header({ alg })] as const,
      ),
      ...['RSA-OAEP', 'RSA1_5', 'dir', 'A128KW', 'ECDH-ES', 'PBES2-HS256+A128KW'].map(
        (alg) => [`alg ${alg}, which is for encryption`, header({ alg, enc: 'A128GCM', p2c: 2 ** 31 })] as const,
      ),
      ...['toString', 'constructor', '__proto__', 'hasOwnProperty'].map(
        (alg) => [`alg ${alg}, a member of every object`, header({ alg })] as const,
      ),
    ],
  },
  {
    attack: 'key of another family or algorithm',
    source: 'RFC 8725 §3.1, RFC 7517 §4.4',
    service: 'allAlgorithms',
    reason: 'key_not_usable',
    cases: [
      ['RS256 by an EC key', otherKey('RS256', 'ec')],
      ['ES256 by an RSA key', otherKey('ES256', 'rsa')],
      ['EdDSA by an EC key', otherKey('EdDSA', 'ec')],
      ['ES256 by an Ed25519 key', otherKey('ES256', 'ed')],
      ['ES384 by a P-256 key', otherKey('ES384', 'ec')],
      ['PS256 by an RSA key for RS256', otherKey('PS256', 'rsa')],
      ['RS512 by an RSA key for RS256', otherKey('RS512', 'rsa')],
      ['RS256 by one RSA key, kid of an EC key', otherKey('RS256', 'rsa', 'ec')],
      ['EdDSA by one key, kid of an RSA key', otherKey('EdDSA', 'ed', 'rsa')],
      ['alg none where every algorithm is allowed', header({ alg: 'none' }), 'unsupported_alg'],
      ['HS256 where every algorithm is allowed', hmac('HS256', () => 'x'), 'unsupported_alg'],
    ],
  },
  {
    attack: 'key that the token brings along',
    source: 'RFC 8725 §3.10, CVE-2018-0114',
    reason: 'invalid_signature',
    cases: [
      ['jwk', bring(({ foreign }) => ({ jwk: foreign.jwk }))],
      [
        'jwk with the kid of the provider',
        bring(({ foreign, keys }) => ({ jwk: { ...foreign.jwk, kid: keys.rsa.kid } })),
      ],
      ['jwk that holds the private key', bring(({ foreign }) => ({ jwk: exportPrivate(foreign.privateKey) }))],
      ['jwk, kid of the attacker', bring(({ foreign }) => ({ jwk: foreign.jwk, kid: foreign.kid })), 'unknown_kid'],
      ['jwk and no kid', bring(({ foreign }) => ({ jwk: foreign.jwk, kid: undefined })), 'missing_kid'],
      [
        'x5c',
        bring(({ foreign }) => ({
          x5c: [foreign.publicKey.export({ type: 'spki', format: 'der' }).toString('base64')],
        })),
      ],
      ['x5t and x5t#S256', bring(() => ({ x5t: 'AAAA', 'x5t#S256': 'AAAA' }))],
    ],
  },
  {
    attack: 'remote key: makes the service call a URL',
    source: 'RFC 8725 §3.10, RFC 7515 §4.1.2, §4.1.5',
    reason: 'invalid_signature',
    cases: [
      ['jku', bring(({ decoy }) => ({ jku: `${decoy.url}/jwks` }))],
      ['x5u', bring(({ decoy }) => ({ x5u: `${decoy.url}/cert` }))],
      ['jku and x5u', bring(({ decoy }) => ({ jku: decoy.url, x5u: decoy.url }))],
      [
        'jku that starts as the provider does',
        bring(({ decoy, provider }) => ({ jku: `http://${provider.domain}@${new URL(decoy.url).host}/jwks` })),
      ],
      [
        'jku, kid of the attacker',
        bring(({ decoy, foreign }) => ({ jku: decoy.url, kid: foreign.kid })),
        'unknown_kid',
      ],
      ['kid that is a URL', bring(({ decoy }) => ({ kid: `${decoy.url}/key` })), 'unknown_kid'],
      ['jku of a file', bring(() => ({ jku: 'file:///etc/passwd' }))],
      [
        'iss that is a URL of the attacker',
        ({ mint, decoy, foreign }) => mint({ claims: { iss: `${decoy.url}/` }, key: foreign }),
        'invalid_issuer',
      ],
    ],
  },
]);

function exportPrivate(key: KeyObject): object {
  return key.export({ format: 'jwk' });
}
