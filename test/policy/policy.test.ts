import { describe, expect, it } from 'vitest';
import { parseScope } from '../../src/policy/policy.ts';

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

it('scopes of a token cannot be changed: they are shared by all its requests', () => {
  const scopes = parseScope('a') as Set<string>; // as from code without types
  expect(() => scopes.add('b')).toThrow(TypeError);
  expect(() => scopes.delete('a')).toThrow(TypeError);
  expect(() => scopes.clear()).toThrow(TypeError);
  expect([...scopes]).toEqual(['a']);
});
