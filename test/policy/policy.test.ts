import { describe, expect, it } from 'vitest';
import { AccessError } from '../../src/failures.ts';
import { enforcePolicy, type Policy, parseScope } from '../../src/policy/policy.ts';

describe('scope claim', () => {
  it.each<[string | undefined, readonly string[]]>([
    [undefined, []],
    ['', []],
    ['read:messages', ['read:messages']],
    ['read:messages write:messages', ['read:messages', 'write:messages']],
    ['b a b', ['b', 'a']],
    ['a,b', ['a,b']],
    ['a\tb', ['a\tb']],
    ['A a', ['A', 'a']],
  ])('%j → %j', (scope, elements) => {
    expect([...parseScope(scope)]).toEqual(elements);
  });
});

describe('scopes that requests share', () => {
  it.each<[string, (scopes: Set<string>) => unknown]>([
    ['added to', (scopes) => scopes.add('admin')],
    ['taken from', (scopes) => scopes.delete('read:messages')],
    ['emptied', (scopes) => scopes.clear()],
  ])('%s → TypeError, and they stay as they are', (_name, change) => {
    const scopes = parseScope('read:messages');
    expect(() => change(scopes as Set<string>)).toThrow(
      new TypeError('The scopes of an access token cannot be changed.'),
    );
    expect([...scopes]).toEqual(['read:messages']);
  });
});

describe('policy', () => {
  const needed: Policy = { scopes: ['read:messages'] };

  it.each<[string, Policy, string | undefined]>([
    ['nothing is asked', {}, undefined],
    ['no scope is asked', { scopes: [] }, undefined],
    ['the one scope', needed, 'read:messages'],
    ['the scope among others', needed, 'openid read:messages profile'],
    ['all of several', { scopes: ['a', 'b'] }, 'b c a'],
  ])('%s → let through', (_name, policy, scope) => {
    expect(() => enforcePolicy(policy, parseScope(scope))).not.toThrow();
  });

  it.each<[string, Policy, string | undefined]>([
    ['no scope', needed, undefined],
    ['an empty scope', needed, ''],
    ['another scope', needed, 'write:messages'],
    ['a prefix', needed, 'read'],
    ['a longer one', needed, 'read:messages:all'],
    ['another case', needed, 'Read:Messages'],
    ['comma-separated', needed, 'read:messages,write:messages'],
    ['a tab between', needed, 'openid\tread:messages'],
    ['a line break between', needed, 'openid\nread:messages'],
    ['a wildcard', needed, 'read:* *'],
    ['one of several', { scopes: ['a', 'b'] }, 'a'],
  ])('%s → insufficient_scope, with all that is needed', (_name, policy, scope) => {
    const scopes = parseScope(scope);
    expect(() => enforcePolicy(policy, scopes)).toThrow(AccessError);
    expect(() => enforcePolicy(policy, scopes)).toThrow(
      expect.objectContaining({ reason: 'insufficient_scope', scopes: policy.scopes }),
    );
  });
});
