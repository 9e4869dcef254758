import { describe } from 'vitest';
import { describeAdmission } from '../adapters/admission.ts';
import { describeRefusals } from '../adapters/refusals.ts';
import { fewRefusedCalls } from '../adapters/refused-calls.ts';
import { createStarts } from './starts.ts';

// `npm run runtimes` runs every framework on every runtime; here two of them run on this Node, in processes of their own.
const few = createStarts([process.execPath]).filter(([name]) => name === 'node' || name === 'fetch');

describe.each(few)('%s, in its own process', (name, start) => {
  describeAdmission(start);
  describeRefusals(name, start, fewRefusedCalls);
});
