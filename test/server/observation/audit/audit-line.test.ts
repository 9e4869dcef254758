import { createHash, createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { AuditDecision } from '../../../../src/core/resource-server/audit.ts';
import { createAuditFormat, maxLineBytes } from '../../../../src/server/observation/audit/audit-line.ts';
import { auditMembers } from '../../../../src/server/observation/audit/decision.ts';
import { createDescribeIdentity, type IdentityMode } from '../../../../src/server/observation/audit/identity.ts';
import { auditSchema } from '../../../../tools/scripts/docs/audit-schema.ts';

const secret = 'a secret of at least 32 bytes, yes';
const sha256 = (text: string, form: 'hex' | 'base64url'): string => createHash('sha256').update(text).digest(form);
const hmac = (text: string): string => createHmac('sha256', secret).update(text).digest('base64url').slice(0, 22);
const time = Date.UTC(2026, 0, 2, 3, 4, 5, 6);
const claims = {
  iss: 'https://idp.example/',
  sub: 'alice',
  azp: 'web',
  jti: 'token-1',
  scope: 'read write',
  cnf: { jkt: 'K'.repeat(43) },
  act: { sub: 'agent', iss: 'https://other.example/', client_id: 'bot', secret: 'x', act: { sub: 'inner' } },
  email: 'alice@example.com',
};
const complete: AuditDecision = {
  id: 'abc-1',
  requestId: 'r-1',
  traceId: 't'.repeat(32),
  decision: 'refused',
  reason: 'insufficient_scope',
  method: 'GET',
  route: '/api/private',
  rule: 'orders',
  host: 'api.example',
  status: 403,
  claims,
  entry: 'staff',
  path: '/api/private',
  scheme: 'DPoP',
  rules: sha256('rules', 'hex'),
  clientIp: '192.0.2.1',
};

function write(decision: AuditDecision, mode: IdentityMode = 'plain'): string {
  return createAuditFormat(createDescribeIdentity(mode, secret))(decision, time);
}
const read = (...args: Parameters<typeof write>): Record<string, unknown> => JSON.parse(write(...args));

describe('a line of the audit trail', () => {
  it('every fact → every member, without other claims', () => {
    expect(read(complete)).toEqual({
      time: '2026-01-02T03:04:05.006Z',
      event: 'decision',
      id: 'abc-1',
      request_id: 'r-1',
      trace_id: 't'.repeat(32),
      decision: 'refused',
      reason: 'insufficient_scope',
      method: 'GET',
      route: '/api/private',
      rule: 'orders',
      host: 'api.example',
      path: '/api/private',
      status: 403,
      issuer: 'https://idp.example/',
      entry: 'staff',
      sub: 'alice',
      client_id: 'web',
      actor: { sub: 'agent', iss: 'https://other.example/', client_id: 'bot' },
      scopes: ['read', 'write'],
      scheme: 'DPoP',
      jkt: 'K'.repeat(43),
      jti_hash: sha256('token-1', 'base64url'),
      rules: sha256('rules', 'hex'),
      client_ip: '192.0.2.1',
    });
  });

  it('no facts → members with a value only, in one line', () => {
    const line = write({ id: 'a', decision: 'admitted', method: 'GET' });
    expect(line.indexOf('\n')).toBe(line.length - 1);
    expect(Object.keys(JSON.parse(line))).toEqual(['time', 'event', 'id', 'decision', 'method']);
  });

  it.each<[IdentityMode, unknown]>([
    ['off', {}],
    ['plain', { sub: 'alice', client_id: 'web', actor: expect.objectContaining({ sub: 'agent', client_id: 'bot' }) }],
    ['hashed', { sub: hmac('alice'), client_id: hmac('web'), actor: expect.objectContaining({ sub: hmac('agent') }) }],
  ])('identity %s → %j', (mode, identity) => {
    const { sub, client_id, actor } = read(complete, mode);
    expect({ ...(sub !== undefined && { sub, client_id, actor }) }).toEqual(identity);
    if (mode === 'hashed') expect(write(complete, mode)).not.toMatch(/alice|agent|"web"/);
  });

  it('claims of another form → omitted', () => {
    const odd = { iss: 1, sub: {}, jti: 7, cnf: null, act: 'x', scope: ['a'] };
    expect(Object.keys(read({ ...complete, claims: odd }))).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/^(?:issuer|sub|client_id|actor|jkt|jti_hash|scopes)$/)]),
    );
  });

  it.each([
    ['a control character', 'a\u0000\u001b\u007f\u0085b', 'a\\u0000\\u001b\\u007f\\u0085b'],
    ['a line break', 'a\nb\u2028c', 'a\\nb\\u2028c'],
    ['bidirectional characters', 'a\u202e\u2066\u200f\u061cb', 'a\\u202e\\u2066\\u200f\\u061cb'],
    ['a quotation mark', 'a"b\\c', 'a\\"b\\\\c'],
    ['half of a pair', 'a\ud83db', 'a\\ud83db'],
    ['a pair', 'a\u{1f600}b', 'a\u{1f600}b'],
  ])('%s in a value → escaped, in one line', (_name, value, escaped) => {
    const line = write({ ...complete, host: value, claims: { ...claims, sub: value } });
    expect(line).toContain(`"host":"${escaped}"`);
    expect(line).toContain(`"sub":"${escaped}"`);
    expect(line.trimEnd()).not.toMatch(/[\p{Cc}\u061c\u200f\u2028\u202e\u2066]/u);
    expect(JSON.parse(line)).toMatchObject({ host: value, sub: value });
  });

  it('a long value → its first 256 characters, without half of a pair', () => {
    expect(read({ ...complete, host: 'h'.repeat(300) })['host']).toBe('h'.repeat(256));
    expect(read({ ...complete, host: `${'h'.repeat(255)}\u{1f600}` })['host']).toBe('h'.repeat(255));
  });

  it.each([
    ['1,000 scopes', Array.from({ length: 1000 }, (_, i) => `scope-${i}`)],
    ['100 long scopes', Array.from({ length: 100 }, (_, i) => `${i}${'\u202e'.repeat(300)}`)],
  ])('%s → at most 4,096 bytes, with the number of omitted ones', (_name, scopes) => {
    const long = '\u202e'.repeat(300);
    for (const other of [{}, { host: long, method: long, route: long, rule: long, clientIp: long, scheme: long }]) {
      const decision = {
        ...{ ...complete, ...other, scopes: new Set(scopes) },
        claims: { ...claims, ...('host' in other && { sub: long, azp: long, iss: long, cnf: { jkt: long } }) },
      };
      const line = write(decision, 'plain');
      expect(Buffer.byteLength(line)).toBeLessThanOrEqual(maxLineBytes);
      const fields = JSON.parse(line);
      expect(fields.scopes.length).toBeGreaterThan(0);
      expect(fields.scopes_omitted).toBe(scopes.length - fields.scopes.length);
    }
  });

  it('AUDIT_PATH=off → no path', () => {
    const line = createAuditFormat(createDescribeIdentity('plain', secret), false)(complete, time);
    expect(JSON.parse(line)).not.toHaveProperty('path');
  });

  it('a cached token → hashed once', () => {
    let described = 0;
    const describeIdentity = createDescribeIdentity('hashed', secret);
    const format = createAuditFormat((each) => {
      described++;
      return describeIdentity(each);
    });
    for (let i = 0; i < 5; i++) format(complete, time + i);
    expect(described).toBe(1);
  });
});

it.each([
  ['entry', { entry: 'loose' }, { entry: 'loose' }],
  ['granted scopes', { scopes: new Set(['admin']) }, { scopes: ['admin'] }],
])('the same claims with another %s → the line has it', (_fact, changed, expected) => {
  const format = createAuditFormat(createDescribeIdentity('plain', secret));
  const first = { ...complete, scopes: new Set(['read']) };
  expect(JSON.parse(format(first, time))).toMatchObject({ entry: 'staff', scopes: ['read'] });
  expect(JSON.parse(format({ ...first, ...changed }, time))).toMatchObject(expected);
  expect(JSON.parse(format(first, time))).toMatchObject({ entry: 'staff', scopes: ['read'] });
});

it('the schema of a line: describes every member, and a complete line has no other', () => {
  expect(Object.keys(auditSchema.properties)).toEqual(Object.keys(auditMembers));
  const lines = [complete, { id: 'a', decision: 'admitted', method: 'GET' } as const].map((each) => read(each));
  for (const line of lines) {
    expect(auditSchema.required.filter((name) => !Object.hasOwn(line, name))).toEqual([]);
    for (const [name, value] of Object.entries(line)) {
      const type = Array.isArray(value) ? 'array' : typeof value === 'number' ? 'integer' : typeof value;
      expect(auditSchema.properties[name]?.type, name).toBe(type);
    }
  }
});
