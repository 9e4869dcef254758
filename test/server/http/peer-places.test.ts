import { expect, it } from 'vitest';
import { createPlaces } from '../../../src/server/http/peer-places.ts';

function open(most: number, share: number) {
  const places = createPlaces(most, share);
  const ended: string[] = [];
  let serial = 0;
  const take = (peer: string) => {
    const name = `${peer}${++serial}`;
    const place = { peer, end: () => ended.push(name) };
    places.take(place);
    return place;
  };
  return { places, ended, take };
}

it.each([
  ['within the limits', ['a', 'a', 'b', 'b'], []],
  ['one more than the part of a peer', ['b', 'a', 'a', 'a'], ['a2']],
  ['one more than all', ['a', 'b', 'c', 'd', 'e'], ['a1']],
  ['more than all, without an address', ['a', '', '', '', '', ''], ['a1', '2']],
])('%s: places of %j → the oldest are ended: %j', (_title, peers, expected) => {
  const { ended, take } = open(4, 0.5);
  for (const peer of peers) take(peer);
  expect(ended).toEqual(expected);
});

it('a place that was left → another use of its peer has it', () => {
  const { places, ended, take } = open(4, 0.5);
  const first = take('a');
  take('a');
  places.leave(first);
  places.leave(first);
  take('a');
  expect(ended).toEqual([]);
});

it('a part below one → one place', () => {
  const { ended, take } = open(4, 0.01);
  take('a');
  take('b');
  take('a');
  expect(ended).toEqual(['a1']);
});

it('a place that was never taken leaves, and a limit of 0 → nothing ends', () => {
  const places = createPlaces(0, 0.5);
  const ended: string[] = [];
  const place = { peer: 'a', end: () => void ended.push('a') };
  places.leave(place);
  places.take(place);
  expect(ended).toEqual([]);
});
