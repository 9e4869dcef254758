import { expect, it } from 'vitest';
import { createResourceServer, type ResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { createGate } from '../../src/gate/gate.ts';
import type { Rule, Rules } from '../../src/gate/match/rules.ts';
import { createTestIssuer } from '../../src/testing/index.ts';

const issuer = createTestIssuer();
const open = () => createResourceServer({ issuers: [issuer], audience: issuer.audience });
const request = new Request('https://api.test/orders', { headers: issuer.headers() });
const granted = await open().judge(request);

const ruleIn = (mode: Rule['mode']): Rules => {
  const rule: Rule = {
    ...{ id: 'orders', access: 'token', hosts: [], path: '/orders', methods: [], policy: {}, issuers: ['test'] },
    ...{ mode, streams: 'end-with-token', preflight: 'judge', credentials: 'forward' },
    ...{ pattern: { hosts: [], segments: ['orders'], hasRest: false, methods: [] }, bind: undefined },
    ...{ stripPrefix: '', strippedSegments: 0, cors: undefined },
  };
  return {
    rules: [rule],
    issuers: new Map([['test', issuer]]),
    introspections: new Map(),
    exchanges: new Map(),
    upstreams: new Map(),
    identity: { 'x-subject': 'sub' },
    resource: undefined,
    find: () => rule,
  };
};

it.each([
  ['undefined', () => undefined],
  ['{}', () => ({})],
  ['a copy of access', () => ({ ...granted })],
  ['a promise of a copy of access', async () => ({ ...granted })],
  ['an object that inherits from access', () => Object.create(granted)],
])('%s as access → 500; in report mode admitted without identity', async (_value, judge) => {
  const decide = (mode: Rule['mode']) =>
    createGate({
      rules: ruleIn(mode),
      openServer: () => ({ ...open(), judge: judge as ResourceServer['judge'] }),
    }).decide(request, undefined);
  expect(await decide('enforce')).toMatchObject({ kind: 'refused', refusal: { status: 500, reason: 'unexpected' } });
  const reported = await decide('report');
  expect(reported).toMatchObject({ kind: 'admitted', access: undefined, wouldRefuse: expect.any(TypeError) });
  expect(JSON.stringify(reported)).not.toContain('test-subject');
});

it('access of this copy → admitted with identity', async () => {
  const gate = createGate({
    rules: ruleIn('enforce'),
    openServer: () => ({ ...open(), judge: (async () => granted) as ResourceServer['judge'] }),
  });
  expect(await gate.decide(request, undefined)).toMatchObject({ kind: 'admitted', access: granted });
});
