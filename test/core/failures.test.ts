import { execFileSync } from 'node:child_process';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { AccessError, type Failure, failures, type Reason } from '../../src/core/failures.ts';
import { Refused } from '../../src/core/refused.ts';

const rows = Object.entries<Failure>(failures) as [Reason, Failure][]; // the keys of the table are the reasons

/** What each error code goes with (RFC 6750 §3.1, RFC 9449 §7.1). */
const statuses: ReadonlyMap<string | null, readonly number[]> = new Map([
  [null, [401]],
  ['invalid_request', [400, 408, 413, 417]],
  ['invalid_token', [401]],
  ['invalid_dpop_proof', [401]],
  ['use_dpop_nonce', [401]],
  ['insufficient_scope', [403]],
  ['insufficient_user_authentication', [401]],
  ['access_denied', [403]],
  ['temporarily_unavailable', [502, 503, 504]],
  ['server_error', [500]],
]);

// Names of claims, header parameters, settings and limits: what helps the operator helps an attacker as well.
const internals =
  /\b(?:iss|aud|exp|nbf|iat|sub|scp|cnf|jkt|jti|htm|htu|ath|jwk|jwks|kid|alg|typ|crit|b64|zip|JOSE|RFC|KiB|Redis|Auth0)\b|[A-Z]+_[A-Z]+|[a-z]+_[a-z]+|\d/;

describe('table of reasons', () => {
  it.each(rows)('%s → a description for the client and a fix for the operator, in whole sentences', (reason, row) => {
    expect(reason).toMatch(/^[a-z]+(?:_[a-z]+)*$/);
    for (const text of [row.description, row.fix]) expect(text).toMatch(/^\S.*\S\.$/);
    expect(row.description).not.toBe(row.fix);
  });

  it.each(rows)('%s → a description that tells none of the internals', (_reason, { description }) => {
    expect(description).not.toMatch(internals);
    expect(description).toMatch(/^[\x20-\x7e]+$/);
    expect(description).not.toMatch(/["\\]/); // RFC 6750 §3: not in error_description
  });

  it.each(rows)('%s → the status of its error code', (_reason, { error, status }) =>
    expect(statuses.get(error)).toContain(status),
  );

  it('a key that is not known and a signature that does not fit → the same on the wire', () => {
    const wire = ({ status, error, description }: Failure) => ({ status, error, description });
    const reasons = ['invalid_signature', 'key_not_usable', 'missing_kid', 'malformed_kid'] as const;
    for (const reason of reasons) expect(wire(failures[reason])).toEqual(wire(failures.unknown_kid));
  });

  it('invalid issuer and invalid audience → called by their names', () => {
    expect(failures.invalid_issuer.description).toContain('invalid issuer');
    expect(failures.invalid_audience.description).toContain('invalid audience');
  });

  it('no two reasons with the same fix', () => expect(new Set(rows.map(([, { fix }]) => fix)).size).toBe(rows.length));
});

describe('AccessError', () => {
  it.each(['forbidden', 'toString', undefined])('%s, which is no reason → TypeError', (reason) =>
    expect(() => new AccessError(reason as never)).toThrow(/^AccessError: write one of the package's reasons/),
  );

  it('carries the row of its reason, and the description as its message', () => {
    const error = new AccessError('expired');
    expect(error).toMatchObject({ name: 'AccessError', reason: 'expired', message: failures.expired.description });
    expect(error.failure).toBe(failures.expired);
    expect(error.scopes).toBeUndefined();
    expect(error.stepUp).toBeUndefined();
    expect(error.context).toBeUndefined();
    expect(Object.hasOwn(error, 'cause')).toBe(false);
  });

  it('carries scopes, step-up, context and cause where they are given', () => {
    const cause = new Error('inner');
    const stepUp = { acrValues: ['gold'], maxAge: undefined };
    const error = new AccessError('insufficient_scope', { scopes: ['a'], stepUp, context: { issuer: 'x' }, cause });
    expect(error).toMatchObject({ scopes: ['a'], stepUp, context: { issuer: 'x' }, cause });
  });

  it('instanceof: of this class, of a subclass, of another copy of the package → true; every other value → false', async () => {
    const copy = `../../src/core/failures.ts?copy`; // a module of its own for the runner
    const { AccessError: Other } = (await import(copy)) as { readonly AccessError: typeof AccessError }; // the same file
    class Own extends AccessError {}
    const error = new AccessError('expired');
    expect(Other).not.toBe(AccessError);
    for (const refused of [error, new Own('expired'), new Other('expired')]) {
      expect([refused instanceof AccessError, refused instanceof Other]).toEqual([true, true]);
    }
    expect([new Own('expired') instanceof Own, error instanceof Own, new Other('expired') instanceof Own]).toEqual([
      true,
      false,
      false,
    ]);
    for (const value of [
      undefined,
      null,
      'expired',
      {},
      new Error('expired'),
      { ...error },
      JSON.parse('{"reason":"expired"}'),
    ]) {
      expect(value instanceof AccessError).toBe(false);
    }
  });

  it('options without a cause → no cause; a cause of undefined → kept', () => {
    expect(Object.hasOwn(new AccessError('expired', { scopes: [] }), 'cause')).toBe(false);
    expect(Object.hasOwn(new AccessError('unexpected', { cause: undefined }), 'cause')).toBe(true);
  });
});

describe('Refused', () => {
  const cause = new Error('inner');
  const options = { scopes: ['a'], stepUp: { acrValues: ['gold'], maxAge: 1 }, context: { issuer: 'x' }, cause };
  const members = (refused: AccessError) => {
    const { name, reason, message, failure, status, statusCode, scopes, stepUp, context, cause } = refused;
    return { name, reason, message, failure, status, statusCode, scopes, stepUp, context, cause };
  };

  it('refusal of the core → instanceof AccessError with its members, and no Error with a stack', () => {
    const refused = new Refused('insufficient_scope', options);
    expect([refused instanceof AccessError, (refused as unknown) instanceof Error, 'stack' in refused]).toEqual([
      true,
      false,
      false,
    ]);
    expect(members(refused)).toEqual(members(new AccessError('insufficient_scope', options)));
  });

  it('toError() → an AccessError with the same members', () => {
    for (const refused of [new Refused('expired'), new Refused('insufficient_scope', options)]) {
      const error = refused.toError();
      expect(error).toBeInstanceOf(Error);
      expect(members(error)).toEqual(members(refused));
    }
  });

  it('printed or as JSON → no claims of its evidence', () => {
    const refused = new Refused('expired').attest({ claims: { sub: 'alice' } }).attest({ kid: 'k1' });
    expect(refused.evidence).toEqual({ claims: { sub: 'alice' }, kid: 'k1' });
    for (const printed of [inspect(refused, { depth: 9, showHidden: true }), JSON.stringify(refused)]) {
      expect(printed).not.toContain('alice');
    }
  });

  it('an AccessError, a refusal → Error.stackTraceLimit is not written', () => {
    const before = Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit');
    const written: unknown[] = [];
    Object.defineProperty(Error, 'stackTraceLimit', {
      configurable: true,
      get: () => 10,
      set: (value) => written.push(value),
    });
    try {
      new Refused('expired').toError();
    } finally {
      Object.defineProperty(Error, 'stackTraceLimit', before ?? { value: 10, writable: true, configurable: true });
    }
    expect(written).toEqual([]);
  });
});

it('Error is frozen → a refusal is made all the same', () => {
  const run = (code: string) =>
    execFileSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' });
  const path = new URL('../../build/core/failures.js', import.meta.url).href;
  const code = `const { AccessError } = await import('${path}'); Object.freeze(Error); console.log(new AccessError('expired').reason)`;
  expect(run(code)).toBe('expired\n');
});
