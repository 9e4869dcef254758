import { expect, it } from 'vitest';
import { readRules } from '../../../src/gate/rules/rules-reader.ts';

const assertion = { issuer: 'https://gate.example/', header: 'X-Auth-Assertion' };
const issuers = { id: { issuer: 'https://id.example/', audience: 'api' } };
const rule = { id: 'a', path: '/a' };

async function read(document: object) {
  const result = await readRules({ name: 'rules.json', text: JSON.stringify({ issuers, rules: [rule], ...document }) });
  return result.kind === 'rules' ? result.rules : result.problems.map(({ message }) => message);
}

it.each<readonly [string, object, RegExp]>([
  ['no audience anywhere', { assertion }, /sends an assertion without an audience/],
  ['an optional rule, no audience', { assertion, rules: [{ ...rule, access: 'optional' }] }, /without an audience/],
  ['no issuer', { assertion: { header: 'X-A' } }, /"issuer"/],
  ['no header', { assertion: { issuer: 'https://gate.example/' } }, /"header"/],
  ['a header of framing', { assertion: { ...assertion, audience: 'u', header: 'Content-Length' } }, /Content-Length/],
  ['Authorization', { assertion: { ...assertion, audience: 'u', header: 'Authorization' } }, /Authorization/],
  ['an identity header', { assertion: { ...assertion, audience: 'u', header: 'x-auth-Subject' } }, /identity header/],
  ['a gate claim', { assertion: { ...assertion, audience: 'u', claims: ['email', 'aud'] } }, /claim "aud" itself/],
  ['a lifetime of 4 s', { assertion: { ...assertion, audience: 'u', lifetime: 4 } }, /5 to 300/],
  ['a lifetime of 301 s', { assertion: { ...assertion, audience: 'u', lifetime: 301 } }, /5 to 300/],
  ['a rule without the top-level member', { rules: [{ ...rule, assertion: { audience: 'u' } }] }, /has no "assertion"/],
  [
    'an open rule with its own',
    { assertion: { ...assertion, audience: 'u' }, rules: [{ ...rule, access: 'open', assertion: { audience: 'v' } }] },
    /validates no token/,
  ],
])('%s → a problem', async (_input, document, problem) => {
  expect((await read(document)) as readonly string[]).toEqual(expect.arrayContaining([expect.stringMatching(problem)]));
});

it.each<readonly [string, object, object | undefined]>([
  ['the common audience', { assertion: { ...assertion, audience: 'u' } }, { audience: 'u', isBound: false }],
  [
    'bind for all rules, off for one',
    { assertion: { ...assertion, audience: 'u', bind: true }, rules: [{ ...rule, assertion: { bind: false } }] },
    { audience: 'u', isBound: false },
  ],
  ['its own', { assertion, rules: [{ ...rule, assertion: { audience: 'v' } }] }, { audience: 'v', isBound: false }],
  ['off', { assertion, rules: [{ ...rule, assertion: 'off' }] }, undefined],
  ['an open rule', { assertion, rules: [{ ...rule, access: 'open' }] }, undefined],
])('%s → the assertion of the rule', async (_input, document, expected) => {
  expect(await read(document)).toMatchObject({ rules: [{ assertion: expected }] });
});
