import { describe, expect, it } from 'vitest';
import { failures, type Reason, reasonsElsewhere } from '../../src/core/failures.ts';
import { starts } from '../runtimes/starts.ts';
import { describeRefusals } from './refusals.ts';
import { fewRefusedCalls, refusedCalls } from './refused-calls.ts';

it('every reason of a resource server → has a request', () => {
  const called = new Set(refusedCalls.map(({ reason }) => reason));
  const expected = (Object.keys(failures) as Reason[]).filter((reason) => !reasonsElsewhere.has(reason)); // its keys are the reasons
  expect([...called].toSorted()).toEqual(expected.toSorted());
});

// The bytes come from one object: Node gets every refusal.
describe.each(starts)('%s', (name, start) =>
  describeRefusals(name, start, name === 'node' ? refusedCalls : fewRefusedCalls),
);
