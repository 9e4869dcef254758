import { afterAll, beforeAll } from 'vitest';
import { issuer } from '../adapters/issuer.ts';
import { type Control, createControl } from './control.ts';
import type { Launched } from './launch.ts';
import { createStarts, runtimeWords } from './starts.ts';

/**
 * Runs commands on the runtime of LIBRARY_RUNTIME, or in this process; starts before the tests of a file and ends after
 * them.
 */
export function openRuntime(): () => Control {
  if (runtimeWords === undefined) return () => createControl(async () => []);
  const start = new Map(createStarts(runtimeWords)).get('fetch');
  let launched: Launched | undefined;
  beforeAll(async () => {
    launched = await start?.(issuer);
  });
  afterAll(() => launched?.close());
  return () => {
    if (launched === undefined) throw new Error('The runtime was not started.');
    return launched;
  };
}
