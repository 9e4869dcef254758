import { describe, expect, it } from 'vitest';
import { failures, type Reason, reasonsElsewhere } from '../../src/core/failures.ts';
import { starts } from '../runtimes/starts.ts';
import { describeRefusals } from './refusals.ts';
import { refusedCalls } from './refused-calls.ts';

it('every reason of a resource server → has a request', () => {
  const reasons = new Set(refusedCalls.map(({ reason }) => reason));
  const expected = (Object.keys(failures) as Reason[]).filter((reason) => !reasonsElsewhere.has(reason)); // its keys are the reasons
  expect([...reasons].toSorted()).toEqual(expected.toSorted());
});

describe.each(starts)('%s', (name, start) => describeRefusals(name, start));
