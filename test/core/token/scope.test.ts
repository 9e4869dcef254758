import { expect, it } from 'vitest';
import { parseScope } from '../../../src/core/token/grants.ts';

it.each<[string | undefined, readonly string[]]>([
  [undefined, []],
  ['', []],
  ['read:messages', ['read:messages']],
  ['read:messages write:messages', ['read:messages', 'write:messages']],
  ['b a b', ['b', 'a']],
  ['a,b', ['a,b']],
  ['a\tb', ['a\tb']],
  ['A a', ['A', 'a']],
])('scope claim: %j → %j', (scope, elements) => expect([...parseScope(scope)]).toEqual(elements));

it.each<[string, (scopes: Set<string>) => unknown]>([
  ['added to', (scopes) => scopes.add('admin')],
  ['taken from', (scopes) => scopes.delete('read:messages')],
  ['emptied', (scopes) => scopes.clear()],
])('scopes that requests share: %s → TypeError, and they are unchanged', (_name, change) => {
  const scopes = parseScope('read:messages');
  expect(() => change(scopes as Set<string>)).toThrow(
    new TypeError('The scopes of an access token cannot be changed.'),
  );
  expect([...scopes]).toEqual(['read:messages']);
});
