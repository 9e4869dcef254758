import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import * as inFetch from '../../src/adapters/fetch.ts';
import type * as inNode from '../../src/adapters/node.ts';
import { explain } from '../../src/explain/explain.ts';
import { client, issuer } from './issuer.ts';
import { type Mounted, mounts } from './mounts/forms.ts';
import { createServers, policy } from './scene.ts';

const scope = 'read:messages';
const bearer = () => ({ authorization: issuer.headers({ sub: 'alice', scope }).authorization });

describe.each(Object.entries(mounts))('%s', (name, mount) => {
  const told: unknown[] = [];
  let mounted: Mounted;
  let failing: Mounted;
  beforeAll(async () => {
    const server = createServers(issuer).usual;
    mounted = await mount(server, { onRefused: (error) => told.push(error) });
    let turn = 0;
    failing = await mount(server, {
      onRefused: () => {
        turn++;
        if (turn % 2 === 0) throw new Error('of the log');
        return Promise.reject(new Error('of the log, later'));
      },
    });
  });
  afterAll(async () => {
    await mounted.close();
    await failing.close();
  });

  const call = async (path: string, headers: Readonly<Record<string, string>> = {}, of = mounted) => {
    const response = await fetch(`${of.origin}${path}`, { headers });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };

  describe('optional', () => {
    const path = '/open';
    it('neither Authorization nor DPoP → no access', async () =>
      expect(await call(path)).toMatchObject({ status: 200, text: '{"reader":null}' }));

    it('a valid token → access', async () =>
      expect(await call(path, bearer())).toMatchObject({ status: 200, text: '{"reader":"alice"}' }));

    it.each<readonly [string, () => Record<string, string>, number]>([
      ['a token that has expired', () => ({ authorization: `Bearer ${issuer.flawed('expired')}` }), 401],
      ['a token without the scope', () => ({ authorization: issuer.headers().authorization }), 403],
      ['another scheme', () => ({ authorization: 'Basic YTpi' }), 401],
      ['an empty Authorization', () => ({ authorization: '' }), 401],
      ['a proof without a token', () => ({ dpop: client.headers({ url: 'http://x/', scope }).dpop }), 401],
    ])('%s → refused', async (_case, headers, status) => expect((await call(path, headers())).status).toBe(status));
  });

  // The wrapper passes the access to the handler.
  const hasReaders = name !== 'fetch' && name !== 'node';

  if (hasReaders)
    it('accessOf without authorization → TypeError, also if the property is set', async () => {
      const answer = await call('/unjudged', bearer());
      expect(answer.status).toBe(500);
      expect(answer.text).toContain('accessOf: this request was not authorized');
    });

  const others = hasReaders ? ['/other-policy', '/other-server'] : [];
  it.each(others)('accessOf of a request that another policy or server authorized: %s → TypeError', async (path) => {
    const answer = await call(path, bearer());
    expect(answer.status).toBe(500);
    expect(answer.text).toContain('accessOf: another policy or server authorized this request');
  });

  it.each(['/forbids', '/rejects'])(
    '%s: an AccessError of the handler → that refusal as the response, and reported',
    async (path) => {
      told.length = 0;
      const answer = await call(path, bearer());
      expect(answer.status).toBe(403);
      const challenge = answer.headers.get('www-authenticate');
      expect(challenge).toContain('error="insufficient_scope"');
      expect(challenge).toContain('scope="read:messages admin"');
      expect(JSON.parse(answer.text)).toMatchObject({ detail: { error: 'insufficient_scope' } });
      expect(told).toMatchObject([{ reason: 'insufficient_scope' }]);
    },
  );

  it.each(['/open', '/forbids'])('%s: an onRefused that throws, or rejects → the same response', async (path) => {
    const authorization = `Bearer ${issuer.flawed('expired')}`;
    for (let turn = 0; turn < 2; turn++) {
      expect((await call(path, { authorization }, failing)).status).toBe(401);
    }
  });

  it.each(['/open', '/forbids'])(
    '%s: its own realm and body for the request; code that throws → the same response',
    async (path) => {
      const bodies: unknown[] = [];
      let turn = 0;
      const own = await mount(createServers(issuer).usual, {
        realm: () => {
          if (turn === 1) throw new Error('of the realm');
          return 'tenant "one"';
        },
        errorBody: (report) => {
          if (turn === 1) throw new Error('of the body');
          bodies.push(report);
          return { contentType: 'application/problem+json', body: '{"instance":"request-7"}' };
        },
      });
      try {
        const authorization = `Bearer ${issuer.flawed('expired')}`;
        const answer = await call(path, { authorization }, own);
        expect(answer).toMatchObject({ status: 401, text: '{"instance":"request-7"}' });
        expect(answer.headers.get('content-type')).toBe('application/problem+json');
        expect(answer.headers.get('www-authenticate')).toContain('Bearer realm="tenant \\"one\\"", error');
        const description = 'The access token has expired.';
        expect(bodies).toEqual([{ status: 401, error: 'invalid_token', description }]);
        if (path === '/forbids') {
          expect(await call(path, bearer(), own)).toMatchObject({ status: 403, text: '{"instance":"request-7"}' });
          expect((await call(path, {}, own)).status).toBe(401);
          expect(bodies.at(-1)).toMatchObject({ status: 401, error: 'unauthorized' });
        }
        turn++;
        const usual = await call(path, { authorization }, own);
        expect(usual.status).toBe(401);
        expect(JSON.parse(usual.text)).toMatchObject({ detail: { error: 'invalid_token' } });
        expect(usual.headers.get('www-authenticate')).toContain('Bearer realm="https://api.test/"');
      } finally {
        await own.close();
      }
    },
  );

  it.each(['/open', '/api/any'])(
    '%s: authorization returns a value that this copy has not granted → 500',
    async (path) => {
      const server = createServers(issuer).usual;
      const granted = await server.judge(new Request('https://api.test/', { headers: bearer() }), {});
      const values = [undefined, true, {}, { ...granted }, Object.create(granted), new Proxy(granted, {})];
      let turn = 0;
      const spy = vi.spyOn(server, 'judge').mockImplementation(() => values[turn++]);
      const replaced = await mount(server, {});
      try {
        for (const _ of values) expect((await call(path, bearer(), replaced)).status).toBe(500);
        expect(spy).toHaveBeenCalledTimes(values.length);
        values.push(granted);
        expect((await call(path, bearer(), replaced)).status).toBe(200);
      } finally {
        await replaced.close();
      }
    },
  );

  describe('a policy for all routes below /api', () => {
    it('without a token → 401 for each; any valid token → 200 for routes without a further policy', async () => {
      expect((await call('/api/any')).status).toBe(401);
      expect((await call('/api/scoped')).status).toBe(401);
      const { authorization } = issuer.headers({ sub: 'bob' });
      expect(await call('/api/any', { authorization })).toMatchObject({ status: 200, text: '{"reader":"bob"}' });
    });

    it.each(['/api/scoped'])('%s with a further scope → 403 without the scope, 200 with it', async (path) => {
      expect((await call(path, { authorization: issuer.headers().authorization })).status).toBe(403);
      expect(await call(path, bearer())).toMatchObject({ status: 200, text: '{"reader":"alice"}' });
    });

    it.each(['/api/scoped'])(
      '%s: a proof is used up once for both policies, and refused in another request',
      async (path) => {
        const headers = client.headers({ url: `${mounted.origin}${path}`, scope });
        expect(await call(path, headers)).toMatchObject({ status: 200, text: '{"reader":"test-subject"}' });
        const again = await call(path, headers);
        expect(again.status).toBe(401);
        expect(again.headers.get('www-authenticate')).toContain('error="invalid_dpop_proof"');
      },
    );
  });
});

describe('onRefused', () => {
  it('a missing scope → explain, with the parameters that it gets, refuses as insufficient_scope', async () => {
    const server = createServers(issuer).usual;
    const refused: inNode.RefusedRequest[] = [];
    const protect = inFetch.createProtect(server, { onRefused: (_error, _request, each) => refused.push(each) });
    const route = protect(policy, () => new Response());
    const request = new Request('https://api.test/', { headers: issuer.headers() });
    expect((await route(request)).status).toBe(403);
    const [{ request: read = request, policy: asked, connection } = {}] = refused;
    expect(await explain(server, read, asked, connection)).toMatchObject({
      verdict: 'refused',
      reason: 'insufficient_scope',
    });
  });
});

it.each([
  ['development', undefined, 1],
  ['development', () => undefined, 0],
  ['production', undefined, 0],
])('NODE_ENV=development: %s, onEvent %s, two refusals → %i hints', async (environment, onEvent, hints) => {
  vi.stubEnv('NODE_ENV', environment);
  vi.resetModules(); // the hint is printed once in a process
  const log = vi.spyOn(console, 'info').mockImplementation(() => undefined);
  const { createProtect } = await import('../../src/adapters/fetch.ts');
  const { createResourceServer } = await import('../../src/core/resource-server/resource-server.ts');
  const server = createResourceServer({
    issuers: [issuer],
    audience: issuer.audience,
    ...(onEvent !== undefined && { onEvent }),
  });
  const route = createProtect(server)({}, () => new Response());
  for (let i = 0; i < 2; i++) expect((await route(new Request('https://api.test/'))).status).toBe(401);
  expect(log.mock.calls).toHaveLength(hints);
  if (hints === 1) expect(log.mock.calls.join()).toContain('missing_credentials');
  if (hints === 1) expect(log.mock.calls.join()).toContain('onEvent: explainRefusals()');
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

it('an option that is not a function → TypeError', () => {
  const options = { onRefused: 'log' } as never; // from a program without types
  expect(() => inFetch.createProtect(createServers(issuer).usual, options)).toThrow(
    /^createProtect: onRefused is a function$/,
  );
});
