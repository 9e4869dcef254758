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
  readonly path: string;
  readonly token?: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: string;
  readonly at?: string;
}

async function decide(
  title: string,
  { path, token = {}, headers = {}, method = 'GET', at = '2027-06-07T10:00:00Z' }: Call,
) {
  vi.useFakeTimers({ now: new Date(at), toFake: ['Date'] });
  const rules = [{ issuers: ['staff'], ...examples.get(title) }];
  const call = { method, url: `https://api.example${path}`, token: { issuer: 'staff', ...token }, headers };
  const sample = { ...call, dpop: false, expect: 'allowed' };
  const [outcome] = await runCases(readValidRules({ issuers, rules }), [sample]);
  return outcome?.decision;
}

afterEach(() => {
  vi.useRealTimers();
});

const details = [{ type: 'account_information', actions: ['list', 'read'], account: '7' }];
const partner = { issuer: 'partners' };

const table: readonly (readonly [title: string, admitted: readonly Call[], refused: readonly Call[]])[] = [
  [
    'Tenant in the path',
    [
      { path: '/t/acme/x', token: { tenant: 'acme' } },
      { path: '/t/a%20b', token: { tenant: 'a b' } },
    ],
    [{ path: '/t/acme/x', token: { tenant: 'Acme' } }, { path: '/t/acme' }, { path: '/t/1', token: { tenant: 1 } }],
  ],
  [
    'Groups',
    [{ path: '/reports', token: { groups: ['sales', 'audit'] } }],
    [
      { path: '/reports', token: { groups: ['sales'] } },
      { path: '/reports', token: { groups: 'audit' } },
      { path: '/reports' },
    ],
  ],
  [
    'Step-up outside office hours',
    [
      { path: '/payments', at: '2027-06-07T06:00:00Z' },
      { path: '/payments', at: '2027-06-07T15:59:59Z' },
      { path: '/payments', at: '2027-06-06T10:00:00Z', token: { amr: ['pwd', 'otp'] } },
    ],
    [
      { path: '/payments', at: '2027-06-07T05:59:59Z', token: { amr: ['pwd'] } },
      { path: '/payments', at: '2027-06-07T16:00:00Z' },
      { path: '/payments', at: '2027-06-06T10:00:00Z' },
    ],
  ],
  [
    'Version of a mobile app',
    [{ path: '/api' }, { path: '/api', headers: { 'X-App-Version': '12' } }],
    [
      { path: '/api', headers: { 'x-app-version': '3' } },
      { path: '/api', headers: { 'x-app-version': '' } },
    ],
  ],
  [
    'Rich authorization requests (RFC 9396)',
    [{ path: '/accounts/7', token: { authorization_details: [{ type: 'x' }, ...details] } }],
    [
      { path: '/accounts/8', token: { authorization_details: details } },
      { path: '/accounts/7', token: { authorization_details: [{ ...details[0], actions: ['list'] }] } },
      { path: '/accounts/7', token: { authorization_details: [] } },
      { path: '/accounts/7' },
    ],
  ],
  [
    'Actors',
    [{ path: '/agents' }, { path: '/agents', token: { act: { sub: 'agent-1' } } }],
    [
      { path: '/agents', token: { act: { sub: 'agent-2' } } },
      { path: '/agents', token: { act: {} } },
    ],
  ],
  [
    'E-mail domain',
    [{ path: '/staff', token: { email: 'a@example.com', email_verified: true } }],
    [
      { path: '/staff', token: { email: 'a@notexample.com', email_verified: true } },
      { path: '/staff', token: { email: 'a@example.com.evil.test', email_verified: true } },
      { path: '/staff', token: { email: 'a@example.com' } },
      { path: '/staff', token: { email: 'a@example.com', email_verified: 'true' } },
    ],
  ],
  [
    'Ranges of numbers',
    [
      { path: '/levels', token: { level: 3 } },
      { path: '/levels', token: { level: 9.5 } },
    ],
    [{ path: '/levels', token: { level: 10 } }, { path: '/levels', token: { level: '5' } }, { path: '/levels' }],
  ],
  [
    'Absent claims',
    [{ path: '/shop' }, { path: '/shop', token: { suspended: false } }],
    [
      { path: '/shop', token: { suspended: true } },
      { path: '/shop', token: { suspended: null } },
    ],
  ],
  [
    'Maintenance window',
    [
      { path: '/orders', method: 'POST', at: '2030-01-05T21:59:59Z' },
      { path: '/orders', method: 'POST', at: '2030-01-06T02:00:00Z' },
    ],
    [{ path: '/orders', method: 'POST', at: '2030-01-05T22:00:00Z' }],
  ],
  [
    'Two issuers',
    [
      { path: '/console', token: { roles: ['admin'] } },
      { path: '/console', token: { ...partner, realm_access: { roles: ['partner-admin'] } } },
    ],
    [
      { path: '/console', token: { ...partner, roles: ['admin'] } },
      { path: '/console', token: { realm_access: { roles: ['partner-admin'] } } },
    ],
  ],
];

describe('examples of the page', () => {
  it.each([
    ['rules.json', (rule: object) => JSON.stringify({ issuers: { main: issuers.staff }, rules: [rule] }, undefined, 1)],
    [
      'rules.yaml',
      ({ id, path: at, when }: { id: string; path: string; when: string }) =>
        `issuers: { main: { issuer: 'https://id.example/', audience: a } }\nrules:\n- id: ${id}\n  path: ${at}\n  when: >-\n    ${when}\n`,
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

  describe.each(table)('%s', (title, admitted, refused) => {
    it.each(admitted)('%j → admitted', async (call) => {
      expect(await decide(title, call)).toBe('allowed');
    });
    it.each(refused)('%j → condition_not_met', async (call) => {
      expect(await decide(title, call)).toBe('condition_not_met');
    });
  });
});
