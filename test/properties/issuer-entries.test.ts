import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createTestIssuer } from '../../src/testing/index.ts';
import { introspect, openEntryGate } from '../support/entry-gate.ts';
import { configureProperties } from './settings.ts';

configureProperties();
/** Each run opens several gates. */
const numRuns = Math.ceil((fc.readConfigureGlobal().numRuns ?? 0) / 10);

const idps = ['https://one.test/', 'https://two.test/'].map((issuer) => createTestIssuer({ issuer, audience: 'api' }));
const [one, two] = idps as [(typeof idps)[0], (typeof idps)[0]]; // two, as just made
const keysOf = (issuer: string) => (issuer === two.issuer ? two : one).keys;
const exp = Math.floor(Date.now() / 1000) + 3600;

/** Each endpoint reports other facts about a token. */
const facts = { active: true, aud: 'api', exp, iat: 1, client_id: 'shop' };
const endpoints = {
  'https://idp.test/a': () => ({ ...facts, sub: 'a', scope: 'read', scp: ['admin'] }),
  'https://idp.test/b': () => ({ ...facts, iss: one.issuer, sub: null, scope: 'read', scp: ['admin'] }),
  'https://idp.test/c': () => ({ active: false }),
};
const introspection = fc
  .tuple(fc.constantFrom(...Object.keys(endpoints)), fc.constantFrom('opaque', 'all'), fc.constantFrom('gate', 'other'))
  .map(([endpoint, tokens, clientId]) => introspect(endpoint, { tokens, clientId }));

const entry = fc.record(
  {
    issuer: fc.constantFrom(one.issuer, two.issuer),
    audience: fc.constantFrom('api', 'other', ['api', 'other']),
    algorithms: fc.constantFrom(['RS256'], ['ES256']),
    clientIds: fc.constantFrom(['shop'], ['test-client']),
    clientIdClaim: fc.constantFrom('client_id', 'cid'),
    scopeClaim: fc.constantFrom('scope', 'scp'),
    subject: fc.constantFrom('required', 'optional'),
    clockTolerance: fc.constantFrom(0, 60),
    introspection,
  },
  { requiredKeys: ['issuer', 'audience'] },
);

const claims = fc.record(
  {
    sub: fc.constantFrom('ann', null, ''),
    aud: fc.constantFrom('api', 'other'),
    client_id: fc.constantFrom('shop', 'test-client'),
    cid: fc.constantFrom('shop'),
    scope: fc.constantFrom('read', 'admin'),
    scp: fc.constantFrom(['read'], ['admin'], 'read'),
    exp: fc.constantFrom(exp, Math.floor(Date.now() / 1000) - 10),
  },
  { requiredKeys: [] },
);
const token = fc.oneof(
  fc.tuple(fc.constantFrom(one, two), claims).map(([idp, own]) => idp.token(own)),
  fc.constantFrom('opaque-1', 'opaque-2'),
);

it('entries that share URLs → each rule decides as a gate that has only its entry', async () => {
  const sets = fc.uniqueArray(entry, { minLength: 2, maxLength: 5, selector: (each) => JSON.stringify(each) });
  let admitted = 0;
  let refused = 0;
  await fc.assert(
    fc.asyncProperty(sets, fc.array(token, { minLength: 1, maxLength: 6 }), async (entries, tokens) => {
      const named = entries.map((each, at) => [`e${at}`, each] as const);
      const rules = named.map(([name]) => ({ id: name, path: `/${name}`, issuers: [name], scopes: ['read'] }));
      const open = (part: typeof named) =>
        openEntryGate({
          file: {
            issuers: Object.fromEntries(part),
            rules: rules.filter(({ id }) => part.some(([name]) => name === id)),
          },
          ...{ keysOf, endpoints },
        });
      const together = await open(named);
      const alone = await Promise.all(named.map((each) => open([each])));
      try {
        // Each token three times: the third time it is cached.
        for (const each of [...tokens, ...tokens, ...tokens]) {
          for (const [at, [name]] of named.entries()) {
            const { decision: _, ...shared } = await together.decide(`/${name}`, each);
            const { decision: __, ...own } = (await alone[at]?.decide(`/${name}`, each)) ?? {};
            expect(shared).toEqual(own);
            if (shared.status === 200) admitted++;
            else refused++;
          }
        }
      } finally {
        for (const each of [together, ...alone]) each.close();
      }
    }),
    { numRuns },
  );
  expect([admitted > 0, refused > 0]).toEqual([true, true]);
});
