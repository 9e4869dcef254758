import { describe, expect, it } from 'vitest';
import { failures, gateReasons, listenerReasons, type Reason } from '../../src/failures.ts';
import { starts } from '../runtimes/starts.ts';
import { describeRefusals } from './refusals.ts';
import { refusedCalls } from './refused-calls.ts';

it('there is a call for every reason, but for those of the gate and of its listener', () => {
  const reasons = new Set(refusedCalls.map(({ reason }) => reason));
  const others = new Set([...gateReasons, ...listenerReasons]);
  const expected = (Object.keys(failures) as Reason[]).filter((reason) => !others.has(reason)); // its keys are the reasons
  expect([...reasons].toSorted()).toEqual(expected.toSorted());
});

describe.each(starts)('%s', (name, start) => describeRefusals(name, start));
