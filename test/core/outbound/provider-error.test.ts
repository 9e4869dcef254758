import { describe, expect, it } from 'vitest';
import {
  describeFailure,
  ProviderError,
  type ProviderFailure,
  providerFailures,
  toProviderError,
} from '../../../src/core/outbound/provider-error.ts';
import { words } from '../../support/words.ts';

/** An error with a code, and perhaps with another behind it. */
const coded = (code: unknown, cause?: unknown): Error =>
  Object.assign(new Error('secret-word', cause === undefined ? undefined : { cause }), { code });

describe('a failed fetch', () => {
  const kinds = Object.keys(providerFailures) as ProviderFailure[]; // the keys are the kinds
  it.each(kinds)('%s → one sentence, and its fix', (kind) => {
    const error = new ProviderError(kind);
    expect(error.message).toMatch(/^The [^.]+(?:\.\d[^.]*)?\.$/);
    expect(error.fix).toMatch(/^[A-Z].*\S$/);
    expect(kinds.filter((each) => new ProviderError(each).message === error.message)).toEqual([kind]);
    expect(error).toMatchObject({ name: 'ProviderError', kind });
    expect(Object.hasOwn(error, 'cause')).toBe(false);
  });

  // What no test of a request reads.
  it.each<[ProviderFailure, string]>([
    ['not_an_introspection', 'no boolean member active'],
    ['bad_token_endpoint', 'no token_endpoint that is an https URL'],
    ['not_an_exchange', 'not a new bearer access token'],
    ['no_actor_token', 'actor cannot be read'],
    ['too_many_calls', 'too many requests without a response'],
  ])('%s → says: %s', (kind, words) => expect(new ProviderError(kind).message).toContain(words));

  it('with a detail and a cause → the detail in brackets, the cause separate', () => {
    const cause = new Error('x');
    const error = new ProviderError('status', { detail: '503', cause });
    expect(error.message).toBe('The identity provider fails. (503)');
    expect(error.cause).toBe(cause);
  });

  it.each<[ProviderFailure, string, RegExp]>([
    ['status', '404', /no metadata, set the address of its keys \(jwksUri\)\.$/],
    ['foreign_issuer', 'https://a.test/{tenantid}/v2.0 instead of https://a.test/common/v2.0', /use findTenants/],
    ['foreign_issuer', 'https://a.test/ instead of https://a.test', /exactly as the provider publishes it/],
  ])('%s, %s → the fix %s', (kind, detail, fix) => {
    expect(new ProviderError(kind, { detail }).fix).toMatch(fix);
  });
});

describe('whatever was thrown', () => {
  const unreached = { kind: 'network', message: 'The identity provider could not be reached.' };

  it('a failed fetch → stays the same', () => {
    const error = new ProviderError('redirect');
    expect(toProviderError(error)).toBe(error);
  });

  it.each([
    ...words(`
      CERT_HAS_EXPIRED ERR_SSL_WRONG_VERSION_NUMBER ERR_TLS_CERT_ALTNAME_INVALID ERR_TLS_HANDSHAKE_TIMEOUT EPROTO
      UNABLE_TO_VERIFY_LEAF_SIGNATURE HOSTNAME_MISMATCH
    `).map((code) => [code, 'tls']),
    ...['ECONNREFUSED', 'UND_ERR_SOCKET', 'E2BIG', 'E', 'E'.repeat(64)].map((code) => [code, 'network']),
  ])('the code %s → %s, with the code', (code, kind) => {
    const thrown = coded(code);
    const error = toProviderError(thrown);
    expect(error).toMatchObject({ kind, cause: thrown });
    expect(error.message.endsWith(` (${code})`)).toBe(true);
    expect(error.message).not.toContain('secret-word');
  });

  it.each([
    ['empty', ''],
    ['in small letters', 'econnrefused'],
    ['with a small letter in front', 'xECONNREFUSED'],
    ['that begins with a digit', '2BIG'],
    ['with a space', 'E E'],
    ['with a line feed behind', 'ECONNREFUSED\n'],
    ['of 65 characters', 'E'.repeat(65)],
    ['that is a number', 7],
  ])('a code %s → network, without it', (_, code) => expect(toProviderError(coded(code))).toMatchObject(unreached));

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a string', 'ECONNREFUSED'],
    ['an object without a code', {}],
  ])('%s → network', (_, thrown) => expect(toProviderError(thrown)).toMatchObject(unreached));

  it.each<[string, unknown, string]>([
    ['the innermost code counts', coded('UND_ERR_CONNECT', coded('CERT_HAS_EXPIRED')), 'CERT_HAS_EXPIRED'],
    ['a cause without a code leaves the outer one', coded('ECONNRESET', new Error('x')), 'ECONNRESET'],
    ['a cause that is no object leaves the outer one', coded('ECONNRESET', 'x'), 'ECONNRESET'],
    ['an error without a code in between', coded('A', new Error('x', { cause: coded('B') })), 'B'],
    ['five deep', coded('A', coded('B', coded('C', coded('D', coded('F'))))), 'F'],
    ['a port that fetch never calls', new TypeError('fetch failed', { cause: new Error('bad port') }), 'BAD_PORT'],
    ['six deep → the fifth', coded('A', coded('B', coded('C', coded('D', coded('F', coded('G')))))), 'F'],
  ])('%s', (_, thrown, code) => {
    expect(toProviderError(thrown).message.endsWith(` (${code})`)).toBe(true);
  });

  it('before a request → without an address', () =>
    expect(describeFailure(new ProviderError('closed'))).toBe(
      'The key set was closed. Nothing: this process was stopping.',
    ));

  it('an error that is its own cause → reported once', () => {
    const thrown = coded('ECONNRESET');
    thrown.cause = thrown;
    expect(toProviderError(thrown)).toMatchObject({ kind: 'network', cause: thrown });
  });
});
