import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import type { Tried } from '../../src/dev/tries/try-kinds.ts';
import { listen, stop } from '../../tools/shared/network.js';
import { enterConsole, findDecision } from '../support/console-client.ts';
import { type DevProcess, startDev } from '../support/dev-process.ts';
import { send } from '../support/http-client.ts';
import { passStart } from '../support/pass-start.ts';
import { needs } from '../support/programs.ts';

/** Signs in to one console. */
async function enter(dev: DevProcess) {
  const link = new URL(await dev.consoleLink());
  const cookie = ['Cookie', await enterConsole(dev.adminUrl, link.searchParams.get('key') ?? '')];
  const own = ['Origin', link.origin, 'Sec-Fetch-Site', 'same-origin', 'Content-Type', 'application/json'];
  const headers = [...cookie, ...own];
  const post = (options: unknown) =>
    send(dev.adminUrl, '/console/api/try', { method: 'POST', headers, body: JSON.stringify(options) });
  return {
    cookie,
    post,
    async run(options: Readonly<Record<string, unknown>>) {
      const usual = { method: 'GET', path: '/api/private-scoped', scope: 'read:messages', permissions: [] };
      return (await post({ ...usual, ...options })).json as Tried; // the service writes this shape
    },
  };
}

const run = promisify(execFile);

/** Pastes a command into a shell, as a reader would; npx finds the package of this folder. */
async function paste(command: string, { environment }: DevProcess): Promise<readonly number[]> {
  const portcullis = command.replaceAll('npx portcullis', `'${process.execPath}' dist/cli/main.js`);
  const { stdout } = await run('sh', ['-c', portcullis], { env: { ...environment, NO_PROXY: '*', no_proxy: '*' } });
  return [...stdout.matchAll(/^HTTP\/1.1 (\d{3})/gm)].map(([, status]) => Number(status));
}

describe('try with DPOP_NONCE=required', async () => {
  const dev = await startDev([], { DPOP_NONCE: 'required', DPOP_NONCE_SECRET: 'x'.repeat(32) });
  afterAll(() => dev.stop());
  const tester = await enter(dev);
  await passStart();

  it.each([
    ['none', [401], 'missing_credentials'],
    ['good', [200], undefined],
    ['expired', [401], 'expired'],
    ['wrong_audience', [401], 'invalid_audience'],
    ['wrong_issuer', [401], 'invalid_issuer'],
    ['ended_session', [200, 401], 'revoked_token'],
    ['revoked_user', [200, 401], 'revoked_token'],
    ['missing_scope', [403], 'insufficient_scope'],
    ['dpop', [401], 'missing_proof_nonce'],
    ['dpop_nonce', [401, 200], undefined],
    ['replayed', [401, 200, 401], 'proof_replayed'],
  ])('%s → %j', async (kind, statuses, reason) => {
    const { requests, remark } = await tester.run({ kind });
    expect(requests.map(({ status }) => status)).toEqual(statuses);
    expect(remark !== '').toBe(reason === 'revoked_token');
    const last = requests.at(-1);
    const { decision } = await findDecision(dev.adminUrl, last?.requestId ?? '', tester.cookie);
    expect([decision.status, decision.reason]).toEqual([last?.status, reason]);
    // Nothing of a token leaves the terminal.
    expect(JSON.stringify(requests)).not.toMatch(/eyJ[\w-]{8}/);
  });

  it('printed command → the same statuses', needs('curl'), async () => {
    for (const [kind, statuses] of [
      ['none', [401]],
      ['good', [200]],
      ['expired', [401]],
      ['missing_scope', [403]],
      ['ended_session', [200, 401]],
      ['revoked_user', [200, 401]],
      ['dpop_nonce', [200]],
      ['replayed', [200, 401]],
    ] as const) {
      const { command } = await tester.run({ kind });
      expect(await paste(command, dev), command).toEqual(statuses);
    }
  });

  it.each([
    ['a kind that does not exist', { kind: 'stolen' }],
    ['another method', { method: 'CONNECT' }],
    ['a URL', { path: 'https://evil.example/' }],
    ['a URL without a scheme', { path: '//evil.example/' }],
    ['a backslash', { path: '/\\evil.example/' }],
    ['two lines', { path: '/a\r\nHost: evil' }],
    ['no path', { path: undefined }],
    ['scopes that are a number', { scope: 1 }],
    ['permissions that are a string', { permissions: 'all' }],
  ])('%s → 400', async (_, odd) => {
    const answer = await tester.post({ kind: 'good', method: 'GET', path: '/', scope: '', permissions: [], ...odd });
    expect(answer.status).toBe(400);
  });

  it('dev without a terminal → prints the console link without its key', () => {
    expect(dev.output).toMatch(/^\S+ "http:\/\/127\.0\.0\.1:\d+\/console\?key=\$\(cat '\S+'\)"$/m);
    expect(dev.output).toMatch(/^Documentation +http:\/\/127\.0\.0\.1:\d+\/docs$/m);
  });
});

describe('try through dev --upstream', async () => {
  const upstream = createServer(({ method, url, headers }, response) => {
    response.end(JSON.stringify({ method, url, sent: headers }));
  });
  const dev = await startDev(['--upstream', `http://127.0.0.1:${await listen(upstream)}`]);
  const tester = await enter(dev);
  afterAll(async () => {
    await dev.stop();
    await stop(upstream);
  });

  it('admitted → response of the upstream, and the deciding rule', async () => {
    const { requests } = await tester.run({ kind: 'good', method: 'POST', path: '/orders/1?x=y', scope: '' });
    expect(requests.map(({ status }) => status)).toEqual([200]);
    expect(JSON.parse(requests[0]?.body ?? '')).toMatchObject({ method: 'POST', url: '/orders/1?x=y' });
    const { decision, explanation } = await findDecision(dev.adminUrl, requests[0]?.requestId ?? '', tester.cookie);
    expect(decision).toMatchObject({ route: 'all', routeKind: 'rule', outcome: 'allowed' });
    expect(explanation?.verdict).toBe('admitted');
  });

  it('wrong audience → 401, explained', async () => {
    const { requests } = await tester.run({ kind: 'wrong_audience', path: '/', scope: '' });
    expect(requests[0]?.status).toBe(401);
    const { explanation } = await findDecision(dev.adminUrl, requests[0]?.requestId ?? '', tester.cookie);
    expect(explanation?.reason).toBe('invalid_audience');
  });

  it('unreachable upstream → 502', async () => {
    await stop(upstream);
    const { requests } = await tester.run({ kind: 'good', path: '/', scope: '' });
    expect(requests[0]?.status).toBe(502);
  });
});
