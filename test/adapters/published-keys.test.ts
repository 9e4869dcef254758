import { describe } from 'vitest';
import { starts } from '../runtimes/starts.ts';
import { describePublishedKeys } from './published-keys.ts';

// Keys are fetched below all frameworks: one of them tells enough.
describe.each(starts.filter(([name]) => name === 'fetch'))('keys, under %s', (_name, start) =>
  describePublishedKeys(start),
);
