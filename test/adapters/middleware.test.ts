import { describe } from 'vitest';
import { describeAdmission } from './admission.ts';
import { middlewares } from './frameworks.ts';
import { describeRefusals } from './refusals.ts';

// The same requests as for the handlers that are wrapped, and the same answers.
describe.each(Object.entries(middlewares))('%s', (name, start) => {
  describe('admitted', () => describeAdmission(start));
  describe('refused', () => describeRefusals(name, start));
});
