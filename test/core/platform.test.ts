import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { makeCertificate } from '../../src/testing/certificate.ts';
import { workerdLimits } from '../runtimes/workerd-limits.ts';

beforeAll(() => {
  vi.stubGlobal('navigator', { userAgent: 'Cloudflare-Workers' });
  vi.resetModules();
});
afterAll(() => vi.unstubAllGlobals());

// On workerd itself: test/runtimes/limits.test.ts.
it('a runtime that calls itself Workers: what cannot work there fails where it is made', async () => {
  const { findLimits } = await import('../runtimes/limits.ts');
  expect(await findLimits((await makeCertificate()).certificate)).toEqual(workerdLimits);
});
