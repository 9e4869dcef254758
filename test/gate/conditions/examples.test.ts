import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { runCases } from '../../../src/gate/review/rule-cases.ts';
import { readRules } from '../../../src/gate/rules/rules-reader.ts';
import { readValidRules } from '../../support/read-rules.ts';

const page = readFileSync('docs/gate/rules.md', 'utf8');
const issuers = {
  staff: { issuer: 'https://id.example/', audience: 'a' },
  partners: { issuer: 'https://partners.example/', audience: 'a' },
};
const examples = new Map(
  [...page.matchAll(/^#### (.+)\n(?:(?!^####)[\s\S])*?```json\n([\s\S]*?)```/gm)].map(([, title = '', text = '']) => [
    title,
    JSON.parse(text) as { readonly issuers?: readonly string[] },
  ]),
);

interface Call {
  readonly path?: string;
  readonly token?: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly at?: string;
}

async function decide(title: string, method: string, path: string, call: Call) {
  const { token, headers = {}, at = '2027-06-07T10:00:00Z' } = call;
  vi.useFakeTimers({ now: new Date(at), toFake: ['Date'] });
  const rules = [{ issuers: ['staff'], ...examples.get(title) }];
  const url = `https://api.example${call.path ?? path}`;
  const sample = { method, url, token: { issuer: 'staff', ...token }, headers, dpop: false, expect: 'allowed' };
  const [outcome] = await runCases(readValidRules({ issuers, rules }), [sample]);
  return outcome?.decision;
}

afterEach(() => {
  vi.useRealTimers();
});

/** A call with a token of these claims. */
const of = (token: object, more: Call = {}): Call => ({ token, ...more });
const at = (time: string, token = {}): Call => ({ token, at: time });
const version = (value: string, name = 'x-app-version'): Call => ({ headers: { [name]: value } });
const accounts = (actions: readonly string[]) => [{ type: 'account_information', actions, account: '7' }];
const admin = { realm_access: { roles: ['partner-admin'] } };
const partner = { issuer: 'partners' };
const verified = { email: 'a@example.com', email_verified: true };

type Row = readonly [title: string, request: string, admitted: readonly Call[], refused: readonly Call[]];
const table: readonly Row[] = [
  [
    'Tenant in the path',
    'GET /t/acme/x',
    [of({ tenant: 'acme' }), of({ tenant: 'a b' }, { path: '/t/a%20b' })],
    [of({ tenant: 'Acme' }), of({}, { path: '/t/acme' }), of({ tenant: 1 }, { path: '/t/1' })],
  ],
  [
    'Groups',
    'GET /reports',
    [of({ groups: ['sales', 'audit'] })],
    [of({ groups: ['sales'] }), of({ groups: 'audit' }), of({})],
  ],
  [
    'Step-up outside office hours',
    'GET /payments',
    [at('2027-06-07T06:00:00Z'), at('2027-06-07T15:59:59Z'), at('2027-06-06T10:00:00Z', { amr: ['pwd', 'otp'] })],
    [at('2027-06-07T05:59:59Z', { amr: ['pwd'] }), at('2027-06-07T16:00:00Z'), at('2027-06-06T10:00:00Z')],
  ],
  ['Version of a mobile app', 'GET /api', [{}, version('12', 'X-App-Version')], [version('3'), version('')]],
  [
    'Rich authorization requests (RFC 9396)',
    'GET /accounts/7',
    [of({ authorization_details: [{ type: 'x' }, ...accounts(['list', 'read'])] })],
    [
      of({ authorization_details: accounts(['list', 'read']) }, { path: '/accounts/8' }),
      of({ authorization_details: accounts(['list']) }),
      of({ authorization_details: [] }),
      of({}),
    ],
  ],
  ['Actors', 'GET /agents', [{}, of({ act: { sub: 'agent-1' } })], [of({ act: { sub: 'agent-2' } }), of({ act: {} })]],
  [
    'E-mail domain',
    'GET /staff',
    [of(verified)],
    [
      of({ ...verified, email: 'a@notexample.com' }),
      of({ ...verified, email: 'a@example.com.evil.test' }),
      of({ ...verified, email_verified: undefined }),
      of({ ...verified, email_verified: 'true' }),
    ],
  ],
  [
    'Ranges of numbers',
    'GET /levels',
    [of({ level: 3 }), of({ level: 9.5 })],
    [of({ level: 10 }), of({ level: '5' }), of({})],
  ],
  ['Absent claims', 'GET /shop', [{}, of({ suspended: false })], [of({ suspended: true }), of({ suspended: null })]],
  [
    'Maintenance window',
    'POST /orders',
    [at('2030-01-05T21:59:59Z'), at('2030-01-06T02:00:00Z')],
    [at('2030-01-05T22:00:00Z')],
  ],
  [
    'Two issuers',
    'GET /console',
    [of({ roles: ['admin'] }), of({ ...partner, ...admin })],
    [of({ ...partner, roles: ['admin'] }), of(admin)],
  ],
];

describe('examples of the page', () => {
  it.each([
    ['rules.json', (rule: object) => JSON.stringify({ issuers: { main: issuers.staff }, rules: [rule] }, undefined, 1)],
    [
      'rules.yaml',
      ({ id, path: place, when }: { id: string; path: string; when: string }) =>
        `issuers: { main: { issuer: 'https://id.example/', audience: a } }\nrules:\n- id: ${id}\n  path: ${place}\n  when: >-\n    ${when}\n`,
    ],
  ])('%s with the mistake of the page → its message, at the line of "when"', (name, write) => {
    const [, sample = ''] = /^## Conditions in CEL$[\s\S]*?```json\n([\s\S]*?)```/m.exec(page) ?? [];
    const [, message = ''] = /```text\nrules\.json:\d+:\d+: (.+)\n```/.exec(page) ?? [];
    const rule = JSON.parse(sample) as { id: string; path: string; when: string };
    expect(readRules({ name, text: write(rule) })).toMatchObject({ kind: 'rules' });
    const text = write({ ...rule, when: rule.when.replace('token', 'tokn') });
    const line = text.split('\n').findIndex((each) => each.includes('when')) + 1;
    expect(readRules({ name, text })).toMatchObject({ problems: [{ line, message }] });
  });

  it('every example is in the table; the client address has its own test', () => {
    const titles = [...examples.keys()].filter((title) => title !== 'Client address');
    expect(table.map(([title]) => title)).toEqual(titles);
  });

  describe.each(table)('%s', (title, request, admitted, refused) => {
    const [method = '', path = ''] = request.split(' ');
    it.each(admitted)('%j → admitted', async (call) => {
      expect(await decide(title, method, path, call)).toBe('allowed');
    });
    it.each(refused)('%j → condition_not_met', async (call) => {
      expect(await decide(title, method, path, call)).toBe('condition_not_met');
    });
  });
});
