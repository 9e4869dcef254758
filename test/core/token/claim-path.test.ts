import { expect, it } from 'vitest';
import { parseJsonObject } from '../../../src/core/jose/json.ts';
import { type ClaimPath, findClaim } from '../../../src/core/token/grants.ts';

const claims = parseJsonObject(
  Buffer.from('{"roles":["a"],"realm_access":{"roles":["b"],"text":"roles"},"a.b":1,"list":[{"roles":["c"]}],"":2}'),
);

it.each<[ClaimPath, unknown]>([
  ['roles', ['a']],
  [['roles'], ['a']],
  [['realm_access', 'roles'], ['b']],
  ['realm_access.roles', undefined],
  ['a.b', 1],
  [['a', 'b'], undefined],
  [['list', '0', 'roles'], undefined],
  [['realm_access', 'text', 'length'], undefined],
  [['realm_access', 'other', 'roles'], undefined],
  ['constructor', undefined],
  [['realm_access', 'constructor'], undefined],
  ['__proto__', undefined],
  [['__proto__', 'constructor'], undefined],
  ['', 2],
])('findClaim: %j → %j', (path, value) => expect(findClaim(claims ?? {}, path)).toEqual(value));
