import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { refuseByFirst } from '../../../src/core/checks.ts';
import type { RegisteredClaims } from '../../../src/core/token/claims.ts';
import {
  bindingChecks,
  type CertificateBinding,
  certificateChecks,
  readConfirmation,
} from '../../../src/core/token/claims.ts';

const thumbprint = createHash('sha256').update('{"crv":"P-256"}').digest('base64url');

function claims(cnf: unknown): RegisteredClaims {
  return { iss: 'https://idp.example.test/', exp: 2, iat: 1, ...(cnf !== undefined && { cnf }) };
}

const modes: readonly CertificateBinding[] = ['off', 'on'];

describe.each(modes)('cnf, certificates %s', (mode) => {
  it.each<[string, unknown, string | undefined]>([
    ['absent', undefined, undefined],
    ['jkt', { jkt: thumbprint }, thumbprint],
    ['jkt as Keycloak 26.7 sends it', { jkt: thumbprint, 'kc-jkt-type': 'DPoP' }, thumbprint],
    ['jkt and unregistered members', { jkt: thumbprint, JKT: 1, x5t: 'a', other: null, __proto__x: {} }, thumbprint],
    ['jkt and a member named __proto__', JSON.parse(`{"jkt":"${thumbprint}","__proto__":{"kid":"a"}}`), thumbprint],
  ])('%s → the thumbprint, or an unbound token', (_name, cnf, jkt) =>
    expect(readConfirmation(claims(cnf), mode)).toEqual({ jkt, certificate: undefined }),
  );

  it.each<[string, unknown]>([
    ['null', null],
    ['a string', thumbprint],
    ['an array', [thumbprint]],
    ['an empty jkt', { jkt: '' }],
    ['a jkt in an array', { jkt: [thumbprint] }],
    ['a jkt one character short', { jkt: thumbprint.slice(1) }],
    ['a jkt one character long', { jkt: `${thumbprint}A` }],
    ['a jkt with padding', { jkt: `${thumbprint}=` }],
    ['a malformed jkt and an unregistered member', { jkt: 1, other: 1 }],
    ['a jkt of another hash', { jkt: createHash('sha512').update('').digest('base64url') }],
  ])('%s → malformed_cnf', (_name, cnf) =>
    expect(readConfirmation(claims(cnf), mode)).toMatchObject({ reason: 'malformed_cnf' }),
  );

  it.each<[string, unknown]>([
    ['no member', {}],
    ['a key', { jwk: { kty: 'EC' } }],
    ['a key name', { kid: 'key-1' }],
    ['a member of another case', { JKT: thumbprint }],
    ['only an unregistered member', { 'kc-jkt-type': 'DPoP' }],
    ['a certificate by another hash', { x5t: thumbprint }],
    ['an inherited jkt', JSON.parse(`{"__proto__":{"jkt":"${thumbprint}"}}`)],
    ...['jwk', 'jwe', 'jku', 'kid', 'osc'].flatMap((name): [string, unknown][] => [
      [`${name} without a value and jkt`, { jkt: thumbprint, [name]: null }],
      [`${name} and jkt`, { jkt: thumbprint, [name]: 'x' }],
      [`${name} and a malformed jkt`, { jkt: 1, [name]: 'x' }],
    ]),
  ])('%s → unsupported_cnf, not an unbound token', (_name, cnf) =>
    expect(readConfirmation(claims(cnf), mode)).toMatchObject({ reason: 'unsupported_cnf' }),
  );
});

const certificates: readonly [string, unknown][] = [
  ['a certificate thumbprint', { 'x5t#S256': thumbprint }],
  ['a certificate thumbprint beside jkt', { jkt: thumbprint, 'x5t#S256': thumbprint }],
  ['a certificate thumbprint beside a malformed jkt', { jkt: 1, 'x5t#S256': thumbprint }],
  ['a malformed certificate thumbprint', { 'x5t#S256': 'of a client certificate' }],
  ['a certificate thumbprint without a value', { 'x5t#S256': undefined }],
];

describe('cnf with a certificate (RFC 8705 §3.1)', () => {
  it.each(certificates)('%s, certificates off → unsupported_cnf', (_name, cnf) =>
    expect(readConfirmation(claims(cnf), 'off')).toMatchObject({ reason: 'unsupported_cnf' }),
  );

  it('read → the binding, alone or next to a key binding', () => {
    const bound = { 'x5t#S256': thumbprint };
    expect(readConfirmation(claims(bound), 'on')).toEqual({ jkt: undefined, certificate: thumbprint });
    const both = { jkt: thumbprint, ...bound };
    expect(readConfirmation(claims(both), 'on')).toEqual({ jkt: thumbprint, certificate: thumbprint });
    expect(readConfirmation(claims({ ...bound, other: 1 }), 'on')).toMatchObject({ certificate: thumbprint });
    expect(readConfirmation(claims({ ...both, kid: 'a' }), 'on')).toMatchObject({ reason: 'unsupported_cnf' });
  });

  it.each<[string, unknown]>([
    ['null', null],
    ['a number', 1],
    ['empty', ''],
    ['in an array', [thumbprint]],
    ['in hexadecimal', 'a'.repeat(64)],
    ['with padding', `${thumbprint}=`],
  ])('%s → malformed_cnf', (_name, value) => {
    const cnf = { 'x5t#S256': value };
    expect(readConfirmation(claims(cnf), 'on')).toMatchObject({ reason: 'malformed_cnf' });
  });

  it('well-formed next to a jkt that is not → malformed_cnf', () => {
    const cnf = { jkt: 1, 'x5t#S256': thumbprint };
    expect(readConfirmation(claims(cnf), 'on')).toMatchObject({ reason: 'malformed_cnf' });
  });
});

type FactsOf<C> = C extends readonly { passes: (facts: infer F) => boolean }[] ? F : never;
type BindingFacts = FactsOf<typeof bindingChecks> & FactsOf<typeof certificateChecks>;

describe('a binding', () => {
  const other = 'A'.repeat(43);
  const free: BindingFacts = { jkt: undefined, certificate: undefined, presented: undefined, scheme: 'Bearer' };

  it.each<[string, Partial<BindingFacts>, string | undefined]>([
    ['to nothing', {}, undefined],
    ['to nothing, though a certificate was presented', { presented: other }, undefined],
    ['to the certificate that was presented', { certificate: thumbprint, presented: thumbprint }, undefined],
    ['to another certificate', { certificate: other, presented: thumbprint }, 'client_certificate_mismatch'],
    ['to a certificate, and none was presented', { certificate: other }, 'missing_client_certificate'],
    ['to a key, under DPoP', { jkt: thumbprint, scheme: 'DPoP' }, undefined],
    ['to a key, under Bearer', { jkt: thumbprint }, 'bound_token_as_bearer'],
    ['to nothing, under DPoP', { scheme: 'DPoP' }, 'unbound_token_as_dpop'],
  ])('%s → %s', (_name, facts, reason) => {
    const all = { ...free, ...facts };
    const byCertificate = all.certificate === undefined ? undefined : refuseByFirst(certificateChecks, all);
    expect((byCertificate ?? refuseByFirst(bindingChecks, all))?.reason).toBe(reason);
  });
});
