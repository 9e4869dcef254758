import { afterEach, expect, it } from 'vitest';
import { watchReloads } from '../../../src/server/lifecycle/reload.ts';

const before = process.listeners('SIGHUP');
afterEach(() => {
  for (const listener of process.listeners('SIGHUP')) {
    if (!before.includes(listener)) process.off('SIGHUP', listener);
  }
});

it('a request before something is added → it is called when it is added, and at the next request', () => {
  const reloads = watchReloads({ write: () => {} } as never); // only errors are written
  const calls: string[] = [];
  reloads.add(() => void calls.push('first'));
  process.emit('SIGHUP');
  reloads.add(() => void calls.push('second'));
  expect(calls).toEqual(['first', 'second']);
  process.emit('SIGHUP');
  expect(calls).toEqual(['first', 'second', 'first', 'second']);
});
