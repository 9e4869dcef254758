import { constants, createSecretKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { CompactSign } from 'jose';
import { describe, expect, it } from 'vitest';
import { type Algorithm, algorithms, canVerify, type Jws, parseJws, verifyJws } from '../../../src/core/jose/jws.ts';
import { alterations } from '../../catalogue/signatures.ts';
import { takeRsaKeys } from '../../support/rsa-keys.ts';

interface KeyPair {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

function makePairs() {
  const rsa = takeRsaKeys();
  return {
    RS256: rsa,
    RS384: rsa,
    RS512: rsa,
    PS256: rsa,
    PS384: rsa,
    PS512: rsa,
    ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
    ES384: generateKeyPairSync('ec', { namedCurve: 'P-384' }),
    ES512: generateKeyPairSync('ec', { namedCurve: 'P-521' }),
    EdDSA: generateKeyPairSync('ed25519'),
    Ed25519: generateKeyPairSync('ed25519'),
    // The types of Node 20 do not know these.
    ...Object.fromEntries(
      names
        .filter((alg) => alg.startsWith('ML'))
        .map((alg) => [alg, generateKeyPairSync(alg.toLowerCase() as 'ed25519')]),
    ),
  };
}

const names = [...algorithms.keys()].filter(canVerify);
const pairs: Readonly<Record<string, KeyPair>> = makePairs();
let strangers: Readonly<Record<string, KeyPair>> | undefined;
const ecNames = ['ES256', 'ES384', 'ES512'];
const rsaNames = names.filter((name) => algorithms.get(name)?.kty === 'RSA');

/** Group orders of the curves (FIPS 186-5), for forged signatures. */
const orders: Readonly<Record<string, string>> = {
  ES256: 'ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551',
  ES384: `${'f'.repeat(48)}c7634d81f4372ddf581a0db248b0a77aecec196accc52973`,
  ES512: `01${'f'.repeat(64)}fa51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409`,
};

function find<T>(entry: T | undefined): T {
  if (entry === undefined) throw new Error('unknown algorithm');
  return entry;
}

const algorithmOf = (name: string): Algorithm => find(algorithms.get(name));
const pairOf = (name: string): KeyPair => find(pairs[name]);
const strangerOf = (name: string): KeyPair => {
  strangers ??= makePairs();
  return find(strangers[name]);
};
const encode = (value: string | Buffer): string => Buffer.from(value).toString('base64url');

function parse(text: string): Jws {
  const jws = parseJws(text);
  if (typeof jws === 'string') throw new Error(`not parsed: ${jws}`);
  return jws;
}

/** Signed by another implementation. */
async function mint(alg: string, claims: object = { sub: 'a' }): Promise<string> {
  return new CompactSign(Buffer.from(JSON.stringify(claims)))
    .setProtectedHeader({ alg, kid: 'k' })
    .sign(pairOf(alg).privateKey);
}

const verifies = (jws: Jws, alg: string, key = pairOf(alg).publicKey): boolean => verifyJws(jws, algorithmOf(alg), key);
const withSignature = (jws: Jws, signature: Buffer): Jws => ({ ...jws, signature });

describe('parsing', () => {
  it('header, payload, signing input and signature come out unchanged', () => {
    const text = `${encode('{"alg":"RS256", "kid":"k"}')}.${encode('any\0thing')}.${encode('signature')}`;
    expect(parseJws(text)).toEqual({
      header: { alg: 'RS256', kid: 'k' },
      headerText: text.slice(0, text.indexOf('.')),
      payload: Buffer.from('any\0thing'),
      signingInput: text.slice(0, text.lastIndexOf('.')),
      signature: Buffer.from('signature'),
    });
  });

  const header = encode('{"alg":"RS256"}');
  const part = encode('abc');

  it.each([
    ['nothing', 'opaque', ''],
    ['a header alone', 'opaque', header],
    ['white space', 'opaque', ' \n'],
    ['five parts', 'encrypted', `${header}.${part}.${part}.${part}.${part}`],
    ['five parts, the key empty (RFC 7516, dir)', 'encrypted', `${header}..${part}.${part}.${part}`],
    ['detached payload without signature', 'parts', `${header}..`],
    ['stray bits in the signature', 'encoding', `${header}.${part}.YR`],
    ['space in front', 'encoding', ` ${header}.${part}.${part}`],
    ['line feed behind', 'encoding', `${header}.${part}.${part}\n`],
    ['a comma', 'encoding', `${header}.${part}.${part},x`],
    ['a header that is JSON in the clear', 'encoding', `{"alg":"RS256"}.${part}.${part}`],
    ['a header that is an array', 'header', `${encode('[]')}.${part}.${part}`],
    ['a header in Latin-1', 'header', `${encode(Buffer.from('{"a":"é"}', 'latin1'))}.${part}.${part}`],
  ])('%s → %s', (_, defect, text) => expect(parseJws(text)).toBe(defect));

  it('a header that is cached by its string → reused; any other → read', () => {
    const known = { alg: 'PS256' };
    const headers = { get: (text: string) => (text === header ? known : undefined) };
    expect(parseJws(`${header}.${part}.${part}`, headers)).toMatchObject({ header: known, headerText: header });
    expect(parseJws(`${encode('{"alg":"ES256"}')}.${part}.${part}`, headers)).toMatchObject({
      header: { alg: 'ES256' },
    });
    expect(parseJws(`${encode('[]')}.${part}.${part}`, headers)).toBe('header');
    expect(parseJws(`${header}.YQ==.${part}`, headers)).toBe('encoding');
  });
});

describe.each(names)('%s', (alg) => {
  it('signature by another implementation → accepted', async () =>
    expect(verifies(parse(await mint(alg)), alg)).toBe(true));

  it('altered payload, header or signature → refused', async () => {
    const [header = '', payload = '', signature = ''] = (await mint(alg)).split('.');
    const other = (await mint(alg, { sub: 'b' })).split('.');
    expect(verifies(parse(`${header}.${other[1]}.${signature}`), alg)).toBe(false);
    expect(verifies(parse(`${header}.${payload}.${other[2]}`), alg)).toBe(false);
    expect(verifies(parse(`${encode(`{"alg":"${alg}"}`)}.${payload}.${signature}`), alg)).toBe(false);
  });

  it('altered signature → refused', async () => {
    const jws = parse(await mint(alg));
    const alter = (change: (signature: Buffer) => Uint8Array) =>
      withSignature(jws, Buffer.from(change(Buffer.from(jws.signature))));
    expect(alterations.filter(([, change]) => verifies(alter(change), alg))).toEqual([]);
  });

  it('another key of the same type → refused', async () =>
    expect(verifies(parse(await mint(alg)), alg, strangerOf(alg).publicKey)).toBe(false));
});

describe.each(ecNames)('%s signatures are r and s of fixed length (RFC 7518 §3.4)', (alg) => {
  const half = find(algorithmOf(alg).signatureLength) / 2;
  const fixed = (hex: string): Buffer => Buffer.from(hex.padStart(half * 2, '0'), 'hex');

  it('DER that happens to be as long as r and s → refused', async () => {
    const { digest } = algorithmOf(alg);
    const jws = parse(await mint(alg));
    const der = sign(digest, Buffer.from(jws.signingInput), { key: pairOf(alg).privateKey, dsaEncoding: 'der' });
    expect(verifies(withSignature(jws, der.subarray(0, half * 2)), alg)).toBe(false);
  });

  it('r or s zero, one, the order or beyond → refused', async () => {
    const jws = parse(await mint(alg));
    const order = find(orders[alg]);
    const edges = [fixed('0'), fixed('1'), fixed(order), Buffer.alloc(half, 0xff)];
    const [r, s] = [jws.signature.subarray(0, half), jws.signature.subarray(half)];
    const forged = edges.flatMap((edge) => [
      Buffer.concat([edge, s]),
      Buffer.concat([r, edge]),
      ...edges.map((other) => Buffer.concat([edge, other])),
    ]);
    expect(forged.filter((signature) => verifies(withSignature(jws, signature), alg))).toEqual([]);
  });

  it('s replaced by order − s → accepted: RFC 7518 has no low-s rule', async () => {
    const jws = parse(await mint(alg));
    const s = BigInt(`0x${jws.signature.toString('hex', half)}`);
    const other = (BigInt(`0x${find(orders[alg])}`) - s).toString(16);
    const signature = Buffer.concat([jws.signature.subarray(0, half), fixed(other)]);
    expect(verifies(withSignature(jws, signature), alg)).toBe(true);
  });
});

describe('one RSA key, six algorithms', () => {
  it.each(rsaNames)('%s signature → accepted as itself alone', async (alg) => {
    const jws = parse(await mint(alg));
    expect(rsaNames.filter((name) => verifies(jws, name))).toEqual([alg]);
  });
});

describe('an RSA signature is as long as the modulus (RFC 8017 §8.1.2)', () => {
  it.each([
    ['PS256', 'sha256', 32],
    ['PS384', 'sha384', 48],
    ['PS512', 'sha512', 64],
  ])('%s that begins with a zero → accepted; without the zero → refused', async (alg, digest, saltLength) => {
    const jws = parse(await mint(alg));
    const padding = constants.RSA_PKCS1_PSS_PADDING;
    const key = { key: pairOf(alg).privateKey, padding, saltLength };
    let signature = jws.signature;
    while (signature[0] !== 0) signature = sign(digest, Buffer.from(jws.signingInput), key);
    expect(verifies(withSignature(jws, signature), alg)).toBe(true);
    expect(verifies(withSignature(jws, signature.subarray(1)), alg)).toBe(false);
  });

  it('a modulus that fills no whole byte at its front → the byte counts', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2052 });
    const jws = parse(await mint('RS256'));
    const signature = sign('sha256', Buffer.from(jws.signingInput), privateKey);
    expect(signature).toHaveLength(257);
    expect(verifies(withSignature(jws, signature), 'RS256', publicKey)).toBe(true);
  });

  it.each([
    ['of another type', pairOf('ES256').publicKey],
    ['that is a secret', createSecretKey(Buffer.alloc(32))],
  ])('a key %s → refused', async (_, key) => expect(verifies(parse(await mint('RS256')), 'RS256', key)).toBe(false));
});
