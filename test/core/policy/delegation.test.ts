import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkPolicy } from '../../../src/core/policy/checked-policy.ts';
import { Refused } from '../../../src/core/refused.ts';
import type { PolicyFacts } from '../../../src/core/token/token-policy.ts';
import { createResourceServer, type Policy } from '../../../src/index.ts';
import { createTestIssuer } from '../../../src/testing/index.ts';

const issuer = createTestIssuer();
const server = createResourceServer({ issuers: [issuer], audience: issuer.audience });
type Claims = Readonly<Record<string, unknown>>;

/** The reason of the refusal, or `granted`. */
async function outcomeOf(policy: unknown, claims: Claims): Promise<string> {
  const headers = new Headers(issuer.headers(claims));
  const request = { method: 'GET', url: 'https://api.test/', headers };
  const judged = await server.judge(request, policy as Policy); // invalid policies too
  return judged instanceof Refused ? judged.reason : 'granted';
}

describe('implies', () => {
  const implies = { admin: ['files:write'], 'files:write': ['files:read', 'files:list'] };

  it.each<[string, Policy, string, boolean]>([
    ['the scope', { scopes: ['files:read'], implies }, 'files:read', true],
    ['a scope that implies it', { scopes: ['files:read'], implies }, 'files:write', true],
    ['a scope that implies it through another', { scopes: ['files:read', 'files:list'], implies }, 'admin', true],
    ['a scope that it implies', { scopes: ['files:write'], implies }, 'files:read', false],
    ['one of several, implied', { anyScope: ['other', 'files:list'], implies }, 'admin', true],
    ['name of an inherited member', { scopes: ['constructor'], implies }, 'admin', false],
  ])('%s', async (_name, policy, scope, isGranted) => {
    const expected = 'anyScope' in policy ? 'no_accepted_scope' : 'insufficient_scope';
    expect(await outcomeOf(policy, { scope })).toBe(isGranted ? 'granted' : expected);
  });

  it('access.scopes and the challenge → unchanged', async () => {
    const request = new Request('https://api.test/', { headers: issuer.headers({ scope: 'admin' }) });
    const access = await server.authorize(request, { scopes: ['files:read'], implies });
    expect([...access.scopes]).toEqual(['admin']);
    expect(checkPolicy({ scopes: ['files:read'], implies }).scopes).toEqual(['files:read']);
  });

  it('many layers of diamonds → read at once', () => {
    const layers = Array.from({ length: 60 }, (_, at) => [
      [`a${at}`, [`a${at + 1}`, `b${at + 1}`]],
      [`b${at}`, [`a${at + 1}`, `b${at + 1}`]],
    ]);
    expect(() => checkPolicy({ implies: Object.fromEntries(layers.flat()) })).not.toThrow();
  });

  // Each of these takes hours if every scope is followed to its end.
  const length = 20_000;
  const chain = Object.fromEntries(Array.from({ length }, (_, at) => [`s${at}`, [`s${at + 1}`]]));
  const star = Object.fromEntries(Array.from({ length }, (_, at) => [`s${at}`, ['all', `t${at}`]]));

  it('a chain of 20,000 scopes → the first grants the last', async () => {
    expect(await outcomeOf({ scopes: [`s${length}`], implies: chain }, { scope: 's0' })).toBe('granted');
    expect(await outcomeOf({ scopes: ['s0'], implies: chain }, { scope: `s${length}` })).toBe('insufficient_scope');
  });

  it('a scope that 20,000 include, and any of 20,000 → granted', async () => {
    expect(await outcomeOf({ scopes: ['all'], implies: star }, { scope: 's7' })).toBe('granted');
    expect(await outcomeOf({ anyScope: Object.keys(chain), implies: chain }, { scope: 's9' })).toBe('granted');
  });

  it('random hierarchies → grants what following each inclusion does', () => {
    const names = Array.from({ length: 8 }, (_, at) => `s${at}`);
    const edges = fc.uniqueArray(fc.tuple(fc.constantFrom(...names), fc.constantFrom(...names)), {
      selector: String,
      maxLength: 14,
    });
    fc.assert(
      fc.property(edges, fc.constantFrom(...names), fc.constantFrom(...names), (all, granted, required) => {
        const below = (scope: string) => all.filter(([from]) => from === scope).map(([, to]) => to);
        const reach = (from: readonly string[]): ReadonlySet<string> => {
          const found = new Set(from);
          for (const each of found) for (const next of below(each)) found.add(next);
          return found;
        };
        const hierarchy = Object.fromEntries(names.filter((n) => below(n).length > 0).map((n) => [n, below(n)]));
        const policy = { scopes: [required], implies: hierarchy };
        if (names.some((name) => reach(below(name)).has(name))) {
          expect(() => checkPolicy(policy)).toThrow('implies has a cycle');
          return;
        }
        const token = { scopes: new Set([granted]) } as unknown as PolicyFacts['token']; // all that this check reads
        const verdict = checkPolicy(policy).judge({ token, now: 0 });
        expect(verdict === undefined).toBe(reach([granted]).has(required));
      }),
    );
  });
});

describe('actor', () => {
  const iss = issuer.issuer;
  const act = { sub: 'agent-1' };
  const elsewhere = { act: { ...act, iss: 'https://x/' } };
  const nest = (depth: number): object => (depth === 1 ? act : { sub: `a${depth}`, act: nest(depth - 1) });

  it.each<[string, Policy, Claims, string]>([
    ['any actor', {}, { act }, 'granted'],
    ['forbidden, none', { actor: 'forbidden' }, {}, 'granted'],
    ['forbidden, one', { actor: 'forbidden' }, { act }, 'actor_not_allowed'],
    ['required, one', { actor: 'required' }, { act }, 'granted'],
    ['required, none', { actor: 'required' }, {}, 'actor_required'],
    ['required, without sub', { actor: 'required' }, { act: { client_id: 'x' } }, 'actor_required'],
    ['list, none', { actor: [{ sub: 'agent-1' }] }, {}, 'actor_required'],
    ['list, listed', { actor: [{ sub: 'other' }, { sub: 'agent-1' }] }, { act }, 'granted'],
    ['list, another', { actor: [{ sub: 'agent-2' }] }, { act }, 'actor_not_allowed'],
    ['list, of the issuer of the token', { actor: [{ sub: 'agent-1' }] }, { act: { ...act, iss } }, 'granted'],
    ['list, of another issuer', { actor: [{ sub: 'agent-1' }] }, elsewhere, 'actor_not_allowed'],
    ['list, iss not a string', { actor: [{ sub: 'agent-1' }] }, { act: { ...act, iss: 5 } }, 'actor_not_allowed'],
    ['list, the issuer stated', { actor: [{ iss: 'https://x/', sub: 'agent-1' }] }, elsewhere, 'granted'],
    ['list, another issuer stated', { actor: [{ iss: 'https://x/', sub: 'agent-1' }] }, { act }, 'actor_not_allowed'],
    ['list, a nested actor', { actor: [{ sub: 'agent-1' }] }, { act: { sub: 'a', act } }, 'actor_not_allowed'],
    ['five actors', {}, { act: nest(5) }, 'granted'],
    ['six actors', {}, { act: nest(6) }, 'malformed_actor'],
    ['string', {}, { act: 'agent-1' }, 'malformed_actor'],
    ['null', {}, { act: null }, 'malformed_actor'],
    ['array', {}, { act: [act] }, 'malformed_actor'],
    ['nested string', {}, { act: { ...act, act: 'x' } }, 'malformed_actor'],
  ])('%s', async (_name, policy, claims, expected) => expect(await outcomeOf(policy, claims)).toBe(expected));

  it('access.actor → the outermost actor without other members, not in JSON', async () => {
    const authorize = (claims: Claims) =>
      server.authorize(new Request('https://api.test/', { headers: issuer.headers(claims) }));
    expect((await authorize({})).actor).toBeUndefined();
    const access = await authorize({ act: { sub: 'a', iss: 'https://x/', client_id: 'c', email: 'e', act } });
    expect(access.actor).toEqual({ sub: 'a', iss: 'https://x/', client_id: 'c' });
    expect(Object.keys(access)).not.toContain('actor');
  });
});

it.each<[string, unknown]>([
  ['implies a cycle of one', { implies: { a: ['a'] } }],
  ['implies a cycle of two, one included twice', { implies: { a: ['b', 'b'], b: ['a'] } }],
  ['implies a cycle at the end of a chain', { implies: { a: ['b', 'c'], c: ['d'], d: ['c'] } }],
  ['implies a list', { implies: ['a'] }],
  ['implies a map, whose scopes would be lost', { implies: new Map([['a', ['b']]]) }],
  ['implies an empty list', { implies: { a: [] } }],
  ['implies a scope with a space', { implies: { 'a b': ['c'] } }],
  ['actor of another value', { actor: 'optional' }],
  ['actor an empty list', { actor: [] }],
  ['actor without sub', { actor: [{ iss: 'https://x/' }] }],
  ['actor with another member', { actor: [{ sub: 'a', act: {} }] }],
  ['actor with an issuer that is not a string', { actor: [{ sub: 'a', iss: 1 }] }],
  ['actor null', { actor: [null] }],
])('%s → TypeError', (_name, policy) => expect(() => checkPolicy(policy as Policy)).toThrow(TypeError));
