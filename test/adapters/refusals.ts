import { afterAll, beforeAll, expect, it } from 'vitest';
import { AccessError } from '../../src/core/failures.ts';
import { type Answer, send } from '../support/http-client.ts';
import type { Running, Start } from './frameworks.ts';
import { issuer } from './issuer.ts';
import { type RefusedCall, refusedCalls } from './refused-calls.ts';
import { createServers, prefix, routes } from './scene.ts';

const servers = createServers(issuer);
const compared = ['www-authenticate', 'content-type', 'cache-control', 'retry-after', 'dpop-nonce'];

/** What of an answer must be the same everywhere. */
function essence({ status, headers, body }: Pick<Answer, 'status' | 'headers' | 'body'>) {
  return { status, body, headers: Object.fromEntries(compared.map((name) => [name, headers.get(name)])) };
}

/** The answer as the resource server describes it, without any framework. */
async function describeExpected(call: RefusedCall, path: string, url: string, lines: readonly string[]) {
  const route = routes.find((each) => each.path === path);
  if (route === undefined) throw new TypeError(`no route ${path}`);
  const { policy } = route;
  const server = servers[route.server];
  const headers = new Headers();
  for (let i = 0; i < lines.length; i += 2) headers.append(lines[i] ?? '', lines[i + 1] ?? '');
  const request = { method: 'GET', url, headers };
  const connection = { remoteAddress: '127.0.0.1' };
  const judge = async () => server.authorize(request, policy, connection);
  if (call.repeated !== undefined) await judge();
  const error = await judge().catch((reason: unknown) => reason);
  const refusal = server.describeRefusal(error, request, { policy, connection });
  expect(refusal.reason).toBe(call.reason);
  return essence({ ...refusal, headers: new Map(Object.entries(refusal.headers)) });
}

/** Where the platform has to make a `Request` of what came, and answers by itself what has no URL. */
const madeOfRequests: ReadonlySet<string> = new Set(['hono', 'hono, basePath', 'fetch']);

/** Registers the tests of refused requests, each compared byte for byte. */
export function describeRefusals(name: string, start: Start, calls: readonly RefusedCall[]): void {
  let running: Running;
  beforeAll(async () => {
    running = await start(issuer);
  });
  afterAll(() => running.close());

  const call = async (refused: RefusedCall, base: string, method = 'GET') => {
    const { server = 'usual', path: route = `/${server}` } = refused;
    const path = `${base}${route}`;
    const url = `${running.origin}${path}`;
    const headers = refused.headers(url);
    if (refused.repeated !== undefined) expect((await send(running.origin, path, { headers })).status).toBe(200);
    const answer = await send(running.origin, path, { headers, method });
    return { answer, expected: await describeExpected(refused, route, url, headers) };
  };

  it.each(calls.map((refused) => ({ how: '', ...refused })))('$reason $how', async (refused) => {
    const told = (await running.refused()).length;
    const { answer, expected } = await call(refused, '');
    expect(essence(answer)).toEqual(expected);
    expect(Number(answer.headers.get('content-length'))).toBe(Buffer.byteLength(expected.body));
    expect((await running.refused()).slice(told)).toEqual([refused.reason]);
  });

  it.each(['user@api.example', 'api.example/path', '[::1', 'api.example:99999'])(
    'Host: %s → the same 400, or no response of a route if the runtime rejects the Request',
    async (host) => {
      const told = (await running.refused()).length;
      const lines = ['Host', host, 'Authorization', issuer.headers({ scope: 'read:messages' }).authorization];
      const answer = await send(running.origin, '/usual', { headers: lines });
      const reasons = (await running.refused()).slice(told);
      if (madeOfRequests.has(name) && reasons.length === 0) {
        // 404 where the runtime reads the Host as a part of the path.
        expect([400, 404]).toContain(answer.status);
        return;
      }
      expect(reasons).toEqual(['bad_host_header']);
      const error = new AccessError('bad_host_header');
      const request = { method: 'GET', url: 'http://-/usual', headers: new Headers({ host }) };
      const { status, headers, body } = servers.usual.describeRefusal(error, request);
      expect(essence(answer)).toEqual(essence({ status, headers: new Map(Object.entries(headers)), body }));
    },
  );

  it('below a prefix → the same refusal', async () => {
    for (const refused of calls.filter(({ reason }) => /^(?:missing|insufficient|invalid)_/.test(reason))) {
      const { answer, expected } = await call(refused, prefix);
      expect(essence(answer), refused.reason).toEqual(expected);
    }
  });

  it('HEAD → status and headers of GET, without the body', async () => {
    const bearers = refusedCalls.filter(({ reason }) => reason === 'missing_credentials' || reason === 'expired');
    for (const refused of bearers) {
      const { answer, expected } = await call(refused, '', 'HEAD');
      expect(essence(answer)).toEqual({ ...expected, body: '' });
    }
  });
}
