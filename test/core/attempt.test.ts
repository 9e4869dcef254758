import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { attempt } from '../../src/core/attempt.ts';

const run = promisify(execFile);
const fail = (): never => {
  throw new Error('of the application');
};

it.each<readonly [string, () => unknown]>([
  ['throws', fail],
  ['rejects', async () => fail()],
  ['rejects later', () => new Promise((_resolve, reject) => setImmediate(reject))],
  ['rejects in another realm', () => runInNewContext('Promise.reject(new Error())')],
  ['returns an object whose then throws', () => Object.fromEntries([['then', fail]])],
  ['returns an object without a readable then', () => Object.defineProperty({}, 'then', { get: fail })],
  ['resolves', async () => 'a value'],
])('a function that %s → undefined, and no rejection is left', async (_case, listener) => {
  const left: unknown[] = [];
  const note = (error: unknown): void => void left.push(error);
  process.on('unhandledRejection', note);
  try {
    expect(attempt(listener)).toBeUndefined();
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    expect(left).toEqual([]);
  } finally {
    process.off('unhandledRejection', note);
  }
});

it.each([[0], ['a text'], [null], [undefined], [Object.fromEntries([['then', 'not a function']])]])(
  'returns %j → that value',
  (value) => expect(attempt((given) => given, value)).toBe(value),
);

it('no function → undefined', () => expect(attempt(undefined)).toBeUndefined());

const listeners = {
  throw: '() => { throw new Error("of the listener"); }',
  reject: 'async () => { throw new Error("of the listener"); }',
};
const programs = {
  'createResourceServer onEvent': `
    const server = createResourceServer({ issuers: [issuer], audience: issuer.audience, onEvent: listener });
    await server.authorize(request).catch(() => undefined);`,
  'createResourceServer onEvent, of key sets': `
    const options = { issuer: 'idp.example', audience: 'urn:api', fetch: offline, onEvent: listener };
    await createResourceServer(options).ready().catch(() => undefined);`,
  'createKeySet onEvent': `
    await createKeySet({ issuer: 'https://idp.example/', fetch: offline, onEvent: listener }).ready().catch(() => undefined);`,
  'createRedisReplayStore onConnection': `
    let called;
    const down = new Promise((resolve) => { called = resolve; });
    await createRedisReplayStore('redis://127.0.0.1:1', { onConnection: () => { called(); return listener(); } });
    await down;`,
  'createProtect onRefused': `
    await createProtect(server, { onRefused: listener })({}, () => new Response())(request);`,
  'createProtect realm and errorBody': `
    await createProtect(server, { realm: listener, errorBody: listener })({}, () => new Response())(request);`,
  'createResourceServer errorBody': `
    const own = createResourceServer({ issuers: [issuer], audience: issuer.audience, errorBody: listener });
    const { status } = await createProtect(own)({}, () => new Response())(request);
    if (status !== 401) throw new Error('status ' + status);`,
  'createMcpAuth onRefused': `
    const { createMcpAuth } = await import('portcullis/mcp');
    const options = { resource: 'https://api.test/', authorizationServers: ['https://idp.test/'], onRefused: listener };
    await createMcpAuth(server, options).bearerAuth.verifier.verifyAccessToken('x').catch(() => undefined);`,
};

it.each(Object.entries(listeners))('listeners that %s → the process goes on', async (_how, listener) => {
  const runs = Object.entries(programs).map(([name, program]) => `{${program}\n}\nconsole.log('${name}');\n`);
  const code = `
    import { createKeySet, createRedisReplayStore, createResourceServer } from 'portcullis';
    import { createProtect } from 'portcullis/fetch';
    import { createTestIssuer } from 'portcullis/testing';
    const listener = ${listener};
    const offline = async () => { throw new TypeError('offline'); };
    const issuer = createTestIssuer();
    const server = createResourceServer({ issuers: [issuer], audience: issuer.audience });
    const request = new Request('https://api.test/');
    ${runs.join('')}
    await new Promise((resolve) => setTimeout(resolve, 50));
    process.exit();
  `;
  const { stdout, stderr } = await run(process.execPath, ['--input-type=module', '--eval', code]);
  expect([stdout.trim().split('\n'), stderr]).toEqual([Object.keys(programs), '']);
});
