import { createPublicKey, type KeyObject, sign } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { importJwk, type JwkSet } from '../../../src/core/jose/jwk.ts';
import { type Algorithm, algorithms, canVerify, parseJws, verifyJws } from '../../../src/core/jose/jws.ts';
import { readJwks } from '../../../src/core/keys/jwks.ts';
import { createStaticKeySet } from '../../../src/core/keys/static-key-set.ts';
import { takeRsaKeys } from '../../support/rsa-keys.ts';
import { readVectors, type Vector } from '../../support/vectors.ts';

// Vectors of C2SP/wycheproof: see test/vectors/README.md. Every case of every file is run.

interface JwsVector extends Vector {
  readonly jws: string;
}

/** Hexadecimal. */
interface SignatureVector extends Vector {
  readonly msg: string;
  readonly sig: string;
}

interface JwsGroup {
  readonly comment: string;
  /** Absent for symmetric keys. */
  readonly public?: Readonly<Record<string, unknown>>;
  readonly private?: Readonly<Record<string, unknown>>;
  readonly tests: readonly JwsVector[];
}

interface SignatureGroup {
  readonly publicKeyPem: string;
  readonly tests: readonly SignatureVector[];
}

function find<T>(entry: T | undefined): T {
  if (entry === undefined) throw new Error('not in the table');
  return entry;
}

/** What becomes of a JWS with the one key it should be verified with; where it ends is told, not only that it does. */
function judge(text: string, jwk: unknown): string {
  const jws = parseJws(text);
  if (typeof jws === 'string') return jws;
  const { alg } = jws.header;
  const algorithm = typeof alg === 'string' ? algorithms.get(alg) : undefined;
  if (typeof alg !== 'string' || algorithm === undefined) return 'alg';
  const imported = importJwk(jwk);
  if ('why' in imported) return imported.why;
  if (!imported.algs.has(alg)) return 'key not for this alg';
  return verifyJws(jws, algorithm, imported.key) ? 'valid' : 'signature';
}

describe('JSON Web Signature', () => {
  const { numberOfTests, testGroups } = readVectors<JwsGroup>('json_web_signature');
  const cases = testGroups.flatMap((group) =>
    group.tests.map((test) => ({ ...test, group: group.comment, jwk: group.public ?? group.private })),
  );
  const cryptographic = ['ModifiedPadding', 'ModifiedSignature'];

  /** Valid in the file, refused here on purpose, and where. */
  const stricter: ReadonlyMap<number, string> = new Map([
    // Symmetric algorithms are never allowed: whoever can verify could also sign.
    ...[1, 348, 352, 357, 358, 359, 376, 377].map((tcId) => [tcId, 'alg'] as const),
    // The key is labelled PS256, the header says PS384.
    [346, 'key not for this alg'],
    [350, 'key not for this alg'],
    // The key is labelled ES521, which is no algorithm.
    [347, 'unknown_alg'],
    [351, 'unknown_alg'],
    // A question mark inside the encoding.
    [372, 'encoding'],
    [373, 'encoding'],
  ]);

  it('every case of the file is run, and every exception is one of its valid cases', () => {
    expect(new Set(cases.map(({ tcId }) => tcId)).size).toBe(numberOfTests);
    const valid = cases.filter(({ result }) => result === 'valid').map(({ tcId }) => tcId);
    expect(valid).toEqual(expect.arrayContaining([...stricter.keys()]));
  });

  it.each(cases)('$tcId $group $comment: $result', ({ tcId, jws, jwk, result, flags = [], group }) => {
    const outcome = judge(jws, jwk);
    if (result === 'valid') {
      expect(outcome).toBe(stricter.get(tcId) ?? 'valid');
    } else if (group === 'SpecialCaseEs256' || flags.some((flag) => cryptographic.includes(flag))) {
      expect(outcome).toBe('signature');
    } else {
      expect(outcome).not.toBe('valid');
    }
  });

  it.each([
    ['use enc', [353, 354]],
    ['key_ops without verify', [355, 356]],
  ])('key with %s → refused for that', (_, ids) => {
    const outcomes = cases.filter(({ tcId }) => ids.includes(tcId)).map(({ jws, jwk }) => judge(jws, jwk));
    expect(outcomes).toEqual(['not_for_signatures', 'not_for_signatures']);
  });

  it('header that says PS512 over another primitive → its signature; header that says the other → its key', () => {
    const others = cases.filter(({ flags }) => flags?.includes('WrongPrimitive'));
    const [says, admits] = ['signature', 'key not for this alg'];
    expect(others.map(({ jws, jwk }) => judge(jws, jwk))).toEqual(
      Array.from({ length: 5 }, () => [says, admits]).flat(),
    );
  });

  it('header that says HS256 with an RSA or EC key → refused, whatever the secret was', () => {
    const confused = cases.filter(({ comment }) => comment.startsWith('rejectsSymmetryConfusion'));
    expect(confused.map(({ jws, jwk }) => judge(jws, jwk))).toEqual(['alg']);
  });
});

describe('JSON Web Signature: encoding cases, signed anew as RS256', () => {
  const { testGroups } = readVectors<JwsGroup>('json_web_signature');
  const vectors = find(testGroups.find(({ comment }) => comment === 'base64')).tests;
  const { privateKey, publicKey } = takeRsaKeys();
  const jwk = publicKey.export({ format: 'jwk' });
  const macLength = 43;
  const alphabet = /[\w-]/g;

  /** The header with RS256 for HS256, and with every foreign character where it stood. */
  function renameAlg(header: string): string {
    const json = Buffer.from(find(header.match(alphabet) ?? undefined).join(''), 'base64url').toString();
    const renamed = Buffer.from(json.replace('HS256', 'RS256')).toString('base64url');
    let at = 0;
    return header.replace(alphabet, () => renamed.charAt(at++));
  }

  /** The signature with what stood in front of the MAC, behind it, or instead of its first characters. */
  function deform(signature: string, mac: string): string {
    const first = mac.search(alphabet);
    const clean = find(mac.match(alphabet) ?? undefined);
    const lead = mac.slice(0, first);
    const tail = mac.slice(first + clean.length);
    return lead + signature.slice(macLength - clean.length) + tail;
  }

  function signAnew(text: string): string {
    const [header = '', payload = '', mac = ''] = text.split('.');
    const signingInput = `${renameAlg(header)}.${payload}`;
    const signature = sign('sha256', Buffer.from(signingInput), privateKey).toString('base64url');
    return `${signingInput}.${deform(signature, mac)}`;
  }

  const cleanText = find(vectors.find(({ tcId }) => tcId === 357)).jws;
  // The names of these two speak of padding, but their text is that of case 357: the padding is put in below.
  const withoutTheirFault = vectors.filter(({ tcId, jws }) => tcId !== 357 && jws === cleanText);

  it('cases whose text has lost its fault are 367 and 370', () =>
    expect(withoutTheirFault.map(({ tcId }) => tcId)).toEqual([367, 370]));

  it.each(vectors.filter((vector) => !withoutTheirFault.includes(vector)))(
    '$tcId $comment',
    ({ tcId, jws, result }) => {
      const isStricter = tcId === 372 || tcId === 373; // a question mark inside the encoding
      expect(judge(signAnew(jws), jwk)).toBe(result === 'valid' && !isStricter ? 'valid' : 'encoding');
    },
  );

  it.each([
    ['header', 0, '='],
    ['header', 0, '=='],
    ['payload', 1, '='],
    ['payload', 1, '=='],
    ['signature', 2, '='],
    ['signature', 2, '=='],
  ])('padding behind the %s → refused', (_, index, padding) => {
    const parts = cleanText.split('.');
    const padded = parts.map((part, at) => (at === index ? part + padding : part)).join('.');
    expect(judge(signAnew(padded), jwk)).toBe('encoding');
  });
});

interface KeySetGroup {
  readonly comment: string;
  /** Absent for symmetric keys. */
  readonly public?: JwkSet;
  readonly private: JwkSet;
  readonly tests: readonly JwsVector[];
}

describe('JSON Web Key', () => {
  const { numberOfTests, testGroups } = readVectors<KeySetGroup>('json_web_key');
  const cases = testGroups.flatMap((group) =>
    group.tests.map((test) => ({ ...test, group: group.comment, keys: group.public ?? group.private })),
  );

  /** Outcome for a JWS by a published key set. */
  function judgeBySet(text: string, jwks: JwkSet): string {
    const jws = parseJws(text);
    if (typeof jws === 'string') return jws;
    const [alg, kid] = [String(jws.header['alg']), String(jws.header['kid'])];
    const dropped = readJwks(jwks).dropped.find((each) => each.kid === kid)?.why;
    const algorithm = algorithms.get(alg);
    if (dropped !== undefined || algorithm === undefined) return dropped ?? 'alg';
    const key = createStaticKeySet(jwks).find(kid, alg);
    if (key === undefined) return 'no key for this alg';
    return verifyJws(jws, algorithm, key) ? 'valid' : 'signature';
  }

  /** The outcome of each case that concerns a key of an accepted type. All others have symmetric keys. */
  const asymmetric: ReadonlyMap<number, string> = new Map([
    [5, 'valid'],
    [6, 'not_for_signatures'],
    [7, 'roca'],
    [8, 'rsa_too_small'],
    [9, 'bad_exponent'],
    [19, 'unknown_alg'],
    [20, 'unknown_alg'],
    [21, 'not_for_signatures'],
    [22, 'not_on_curve'],
    [23, 'malformed'],
    [24, 'malformed'],
  ]);

  it('every case of the file is run', () => expect(new Set(cases.map(({ tcId }) => tcId)).size).toBe(numberOfTests));

  it.each(cases)('$tcId $group $comment: $result', ({ tcId, jws, keys, result }) => {
    const outcome = judgeBySet(jws, keys);
    expect(outcome).toBe(asymmetric.get(tcId) ?? 'symmetric');
    if (result === 'invalid') expect(outcome).not.toBe('valid');
  });
});

interface SignatureFile {
  readonly name: string;
  readonly alg: string;
}

const signatureFiles: readonly SignatureFile[] = [
  { name: 'rsa_signature_2048_sha256', alg: 'RS256' },
  { name: 'ecdsa_secp256r1_sha256_p1363', alg: 'ES256' },
  { name: 'ed25519', alg: 'EdDSA' },
  { name: 'ed25519', alg: 'Ed25519' },
];

describe.each(signatureFiles)('$name → $alg', ({ name, alg }) => {
  const { numberOfTests, testGroups } = readVectors<SignatureGroup>(name);
  const algorithm: Algorithm = find(algorithms.get(alg));
  const cases = testGroups.flatMap((group) => {
    const key = importPem(group.publicKeyPem);
    return group.tests.map((test) => ({ ...test, key }));
  });

  function importPem(pem: string): KeyObject {
    const imported = importJwk(createPublicKey(pem).export({ format: 'jwk' }));
    if ('why' in imported) throw new Error(`key not imported: ${imported.why}`);
    return imported.key;
  }

  it('every case of the file is run', () => expect(new Set(cases.map(({ tcId }) => tcId)).size).toBe(numberOfTests));

  it.each(cases)('$tcId $comment: $result', ({ key, msg, sig, result }) => {
    const jws = { signingInput: Buffer.from(msg, 'hex').toString('latin1'), signature: Buffer.from(sig, 'hex') };
    expect(verifyJws(jws, algorithm, key)).toBe(result === 'valid');
  });
});

interface MlDsaGroup {
  /** Hexadecimal. */
  readonly publicKey: string;
  readonly tests: readonly (SignatureVector & { readonly ctx?: string })[];
}

// Before Node 24.6 no key is read, and no signature is valid. JOSE has no context: those with another than the empty one are invalid here.
describe('mldsa_44_verify → ML-DSA-44', () => {
  const { numberOfTests, testGroups } = readVectors<MlDsaGroup>('mldsa_44_verify');
  const cases = testGroups.flatMap(({ publicKey, tests }) => tests.map((test) => ({ ...test, publicKey })));

  it('every case of the file is run', () => expect(new Set(cases.map(({ tcId }) => tcId)).size).toBe(numberOfTests));

  it.each(cases)('$tcId $comment: $result', ({ publicKey, msg, sig, ctx, result }) => {
    const pub = Buffer.from(publicKey, 'hex').toString('base64url');
    const imported = importJwk({ kty: 'AKP', alg: 'ML-DSA-44', pub });
    const signed = { signingInput: Buffer.from(msg, 'hex').toString('latin1'), signature: Buffer.from(sig, 'hex') };
    const isValid = !('why' in imported) && verifyJws(signed, find(algorithms.get('ML-DSA-44')), imported.key);
    expect(isValid).toBe(result === 'valid' && (ctx ?? '') === '' && canVerify('ML-DSA-44'));
  });
});
