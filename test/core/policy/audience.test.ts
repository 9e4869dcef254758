import { expect, it } from 'vitest';
import { createResourceServer } from '../../../src/core/resource-server/resource-server.ts';
import { explain } from '../../../src/explain/explain.ts';
import { createTestIssuer } from '../../../src/testing/index.ts';

it('a token for another audience than the policy requires → the check has both', async () => {
  const issuer = createTestIssuer();
  const server = createResourceServer({ issuers: [issuer], audience: [issuer.audience, 'orders'] });
  const request = new Request('https://api.test/', { headers: issuer.headers() });
  const { reason, checks } = await explain(server, request, { audience: 'orders' });
  expect(reason).toBe('invalid_audience');
  expect(checks.find(({ verdict }) => verdict === 'fail')).toMatchObject({
    expected: expect.anything(),
    seen: issuer.audience,
  });
  const judged = await server.judge(request, { audience: 'orders' });
  expect(Reflect.get(judged, 'evidence').compare()).toEqual({ expected: ['orders'], received: issuer.audience });
});
