import { describe, expect, it } from 'vitest';
import { failures } from '../../src/failures.ts';
import { starts } from '../runtimes/starts.ts';
import { describeRefusals } from './refusals.ts';
import { refusedCalls } from './refused-calls.ts';

it('there is a call for every reason', () => {
  const reasons = new Set(refusedCalls.map(({ reason }) => reason));
  expect([...reasons].toSorted()).toEqual(Object.keys(failures).toSorted());
});

describe.each(starts)('%s', (name, start) => describeRefusals(name, start));
