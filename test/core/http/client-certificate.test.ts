import { createHash, X509Certificate } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { createReadClientCertificate } from '../../../src/core/http/client-certificate.ts';
import type { Trust } from '../../../src/core/http/external-url.ts';
import type { Connection } from '../../../src/core/http/request.ts';
import { loadX509, makeLocalhostCertificate } from '../../../src/testing/certificate/self-signed.ts';
import { createTestCertificates } from '../../support/tls.ts';

const proxy = '10.0.0.1';
let der: Buffer;
let thumbprint: string;

beforeAll(async () => {
  der = new X509Certificate((await createTestCertificates()).cert).raw;
  thumbprint = createHash('sha256').update(der).digest('base64url');
});

const request = (value: string | null) => ({
  method: 'GET',
  url: 'https://api.test/',
  headers: { get: (name: string) => (name === 'client-cert' ? value : null) },
});
/** A certificate whose base64 ends in padding: each is a little longer or shorter than the one before. */
async function makePadded(): Promise<Buffer> {
  for (let organisation = 'a'; ; organisation += 'a') {
    const validity = { notBefore: new Date(0), notAfter: new Date() };
    const { certificate } = await makeLocalhostCertificate(await loadX509(), { organisation, ...validity });
    const { raw } = new X509Certificate(certificate);
    if (raw.length % 3 !== 0) return raw;
  }
}
const encode = (bytes: Uint8Array) => `:${Buffer.from(bytes).toString('base64')}:`;

describe('the header of a trusted proxy (RFC 9440)', () => {
  const read = createReadClientCertificate('header', [proxy]);
  const from = (value: string | null, remoteAddress: string | undefined = proxy) =>
    read(request(value), { remoteAddress });

  it('a certificate → its thumbprint, each time', () => {
    expect(from(encode(der))).toBe(thumbprint);
    expect(from(encode(der))).toBe(thumbprint);
  });

  it('no header → none', () => expect(from(null)).toBeUndefined());

  it('from any other peer → ignored, unread', () => {
    expect(from(encode(der), '10.0.0.2')).toBeUndefined();
    expect(from('not a certificate', '10.0.0.2')).toBeUndefined();
    expect(read(request(encode(der)), undefined)).toBeUndefined();
  });

  it.each<Trust>([
    ...(['all', ['0.0.0.0/0'], ['10.0.0.1', '::/0'], ['10.0.0.0/0'], ['::ffff:0:0/96']] as const),
    ...[
      ['128.0.0.0/1', '0.0.0.0/1'],
      ['10.0.0.0/8', '0.0.0.0/1', '192.0.0.0/2', '128.0.0.0/2'],
      ['8000::/1', '::/1'],
    ],
    ['0.0.0.0/1', '::ffff:128.0.0.0/97'],
  ])('trust in every peer, as in %j → TypeError', (trust) =>
    expect(() => createReadClientCertificate('header', trust)).toThrow(/^clientCertificate: anybody could write/),
  );

  it.each<{ trust: Trust }>([
    { trust: ['0.0.0.0/1', '192.0.0.0/2'] },
    { trust: ['128.0.0.0/1', '::ffff:0.0.0.0/98'] },
    { trust: ['8000::/1', '2001:db8::1'] },
  ])('trust in a part, as in $trust → accepted', ({ trust }) =>
    expect(createReadClientCertificate('header', trust)).toBeTypeOf('function'),
  );

  it.each<[string, (text: string) => string]>([
    ['two headers', (text) => `${text}, ${text}`],
    ['two headers, joined without a space', (text) => `${text},${text}`],
    ['parameters', (text) => `${text};a=1`],
    ['without colons', (text) => text.slice(1, -1)],
    ['without the last colon', (text) => text.slice(0, -1)],
    ['white space around it', (text) => ` ${text}`],
    ['PEM', (text) => `-----BEGIN CERTIFICATE-----${text.slice(1, -1)}-----END CERTIFICATE-----`],
    ['URL-encoded', encodeURIComponent],
    ['base64url', () => encode(der).replaceAll('+', '-').replaceAll('/', '_').replace(':', ':_')],
    ['nothing', () => '::'],
    ['an empty header', () => ''],
    ['stray bits', () => `:${Buffer.from([0x30, 0, 0, 0, 0]).toString('base64').replace(/A=$/, 'B=')}:`],
    ['no certificate', () => encode(Buffer.from('a certificate'))],
    ['a certificate and something behind it', () => encode(Buffer.concat([der, Buffer.from('x')]))],
    ['a certificate cut short', () => encode(der.subarray(0, -1))],
    ['too long', () => encode(Buffer.alloc(13_000))],
  ])('%s → bad_forwarded_header', (_name, change) => {
    expect(from(change(encode(der)))).toEqual(
      expect.objectContaining({ reason: 'bad_forwarded_header', context: { header: 'Client-Cert' } }),
    );
  });

  it('stray bits behind the last byte of a certificate → bad_forwarded_header', async () => {
    const text = encode(await makePadded());
    const at = text.indexOf('=') - 1;
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
    const strayed = text.slice(0, at) + alphabet[alphabet.indexOf(text.charAt(at)) + 1] + text.slice(at + 1);
    expect(Buffer.from(strayed.slice(1, -1), 'base64')).toEqual(Buffer.from(text.slice(1, -1), 'base64'));
    expect(from(text)).toHaveLength(43);
    expect(from(strayed)).toEqual(expect.objectContaining({ reason: 'bad_forwarded_header' }));
  });

  it('no trusted peer → TypeError', () =>
    expect(() => createReadClientCertificate('header', 'none')).toThrow(/name them in trustProxy/));
});

describe('the connection', () => {
  const read = createReadClientCertificate('tls', 'none');
  const over = (connection?: Connection) => read(request(encode(der)), connection);

  it('a certificate → its thumbprint, calculated once for a connection', () => {
    let asked = 0;
    const connection: Connection = {
      getPeerCertificate: () => {
        asked++;
        return { raw: der };
      },
    };
    expect(over(connection)).toBe(thumbprint);
    expect(over(connection)).toBe(thumbprint);
    expect(asked).toBe(1);
  });

  it.each<[string, Connection | undefined]>([
    ['unknown', undefined],
    ['without TLS', {}],
    ['without a certificate', { getPeerCertificate: () => ({}) }],
    ['that is gone', { getPeerCertificate: () => null }],
  ])('%s → none, whatever a header says', (_name, connection) => expect(over(connection)).toBeUndefined());
});
