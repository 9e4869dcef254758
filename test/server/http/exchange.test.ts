import { expect, it } from 'vitest';
import { Exchange } from '../../../src/server/http/exchange.ts';

const request = { method: 'GET', url: 'http://localhost/', headers: new Headers() };
const beginSome = (count: number): readonly string[] =>
  Array.from({ length: count }, () => new Exchange(request, {}).id);

it('ids → unique; every character after the prefix of the process is random', () => {
  const count = 20_000;
  const ids = beginSome(count);
  expect(new Set(ids).size).toBe(count);
  expect(ids.filter((id) => !/^[A-Za-z0-9]{6}-[A-Za-z0-9]{12}$/.test(id))).toEqual([]);
  // 62 characters, each expected at least 312 times at each position: a counter or a constant prefix has fewer of them.
  for (let position = 7; position < 19; position++) {
    expect(new Set(ids.map((id) => id[position])).size).toBe(62);
  }
});

it('consecutive ids → equal in no more positions than chance explains', () => {
  const ids = beginSome(1000);
  const equal = ids
    .slice(1)
    .map((id, index) => [...id].filter((character, at) => character === ids[index]?.[at]).length);
  expect(Math.max(...equal)).toBeLessThan(7 + 8);
});
