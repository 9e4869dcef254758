import * as undici from 'undici';
import { afterEach, describe, expect, it, vi } from 'vitest';

/** The functions, as a process has them that loads them now. */
async function load() {
  vi.resetModules();
  return import('../../src/outbound/undici.ts');
}

afterEach(() => {
  vi.unstubAllGlobals();
  vi.doUnmock('undici');
});

describe('undici in parts', () => {
  it('are the very classes of the whole, so that each works with the others', async () => {
    const { loadAgent, loadFetch, loadPool } = await load();
    expect([await loadAgent(), await loadPool()]).toEqual([undici.Agent, undici.Pool]);
    expect((await loadFetch()).name).toBe('fetch');
  });

  it('on Bun, which has the whole alone, are taken from that', async () => {
    const whole = { fetch: () => {}, Agent: class {}, Pool: class {} };
    vi.stubGlobal('Bun', {});
    vi.doMock('undici', () => whole);
    const { loadAgent, loadFetch, loadPool } = await load();
    expect([await loadFetch(), await loadAgent(), await loadPool()]).toEqual([whole.fetch, whole.Agent, whole.Pool]);
  });
});
