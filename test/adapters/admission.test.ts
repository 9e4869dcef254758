import { describe } from 'vitest';
import { starts } from '../runtimes/starts.ts';
import { describeAdmission } from './admission.ts';

describe.each(starts)('%s', (_name, start) => describeAdmission(start));
