import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Claims } from '../../src/token/claims.ts';
import { readConfirmation } from '../../src/token/confirmation.ts';

const thumbprint = createHash('sha256').update('{"crv":"P-256"}').digest('base64url');

function claims(cnf: unknown): Claims {
  return { iss: 'https://idp.example.test/', exp: 2, iat: 1, ...(cnf !== undefined && { cnf }) };
}

describe('cnf', () => {
  it.each<[string, unknown, string | undefined]>([
    ['absent', undefined, undefined],
    ['an object without members', {}, undefined],
    ['jkt', { jkt: thumbprint }, thumbprint],
  ])('%s → the thumbprint, or a free token', (_name, cnf, jkt) => {
    expect(readConfirmation(claims(cnf))).toBe(jkt);
  });

  it.each<[string, unknown]>([
    ['null', null],
    ['a string', thumbprint],
    ['an array', [thumbprint]],
    ['an array of objects', [{ jkt: thumbprint }]],
    ['a number', 1],
    ['a boolean', false],
    ['an empty jkt', { jkt: '' }],
    ['a jkt of null', { jkt: null }],
    ['a jkt in an array', { jkt: [thumbprint] }],
    ['a jkt one character short', { jkt: thumbprint.slice(1) }],
    ['a jkt one character long', { jkt: `${thumbprint}A` }],
    ['a jkt with padding', { jkt: `${thumbprint}=` }],
    ['a jkt of another hash', { jkt: createHash('sha512').update('').digest('base64url') }],
  ])('%s → malformed_cnf', (_name, cnf) => {
    expect(() => readConfirmation(claims(cnf))).toThrow(expect.objectContaining({ reason: 'malformed_cnf' }));
  });

  it.each<[string, unknown]>([
    ['a certificate thumbprint', { 'x5t#S256': thumbprint }],
    ['a certificate thumbprint beside jkt', { jkt: thumbprint, 'x5t#S256': thumbprint }],
    ['a certificate thumbprint beside a malformed jkt', { jkt: 1, 'x5t#S256': thumbprint }],
    ['a key', { jwk: { kty: 'EC' } }],
    ['a key name', { kid: 'key-1' }],
    ['a member of another case', { JKT: thumbprint }],
    ['an unknown member without a value', { other: null }],
  ])('%s → unsupported_cnf: not taken as a free token', (_name, cnf) => {
    expect(() => readConfirmation(claims(cnf))).toThrow(expect.objectContaining({ reason: 'unsupported_cnf' }));
  });
});
