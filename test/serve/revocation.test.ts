import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { runCommand } from '../support/command-runs.ts';
import { useFolder } from '../support/folder.ts';
import { sendLogout } from '../support/logout.ts';
import { type OpenedService, openService } from '../support/open-service.ts';
import { needs } from '../support/programs.ts';
import { awaitReady, ServiceStartError } from '../support/service-process.ts';
import { askAdmin, now, startRedis, statusOf as status, useSessions } from '../support/sessions.ts';
import { useTestProvider } from '../support/test-provider.ts';
import { eventTypes, startTransmitter } from '../support/transmitter.ts';

const provider = await useTestProvider();
const folder = useFolder();
const { open, start, token } = useSessions(provider);

type Environment = Readonly<Record<string, string>>;

const limits = { timeout: 20_000 };
const post = (url: string, body: string, headers: Environment = {}) =>
  fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers } });
const logOut = (service: OpenedService, claims: object = {}) =>
  sendLogout(provider, service, 's1', { sub: 'ann', ...claims });

it('a logout → the tokens of the session are refused, and the log says by which event', async () => {
  const service = await start({ LOGOUT_CLIENTS: 'app' });
  const [ended, other] = [await token(), await token({ sid: 's2' })];
  expect([await status(service, ended), await status(service, other)]).toEqual([200, 200]);
  expect(await logOut(service)).toBe(200);
  await vi.waitFor(async () => expect(await status(service, ended)).toBe(401), limits);
  expect(await status(service, other)).toBe(200);
  const line = await service.findLog(({ reason }) => reason === 'revoked_token');
  expect(line).toMatchObject({ revocation: 'logout', by: 'sid', since: expect.stringMatching(/^2/) });
  expect(JSON.stringify(line)).not.toMatch(/"s1"|ann/);
  const { body: metrics } = await askAdmin(service, '/metrics');
  expect(metrics).toContain('portcullis_logout_tokens_total{outcome="accepted"} 1');
  expect(metrics).toMatch(/^portcullis_revocation_cutoffs 1$/m);
});

it('POST /revocations → 204, and the tokens of the user are refused everywhere', async () => {
  const file = join(folder, `admin-key`);
  await writeFile(file, 'k'.repeat(40));
  const service = await start({ ADMIN_KEY_FILE: file });
  const ann = await token();
  expect(await status(service, ann)).toBe(200);
  const url = `${service.adminUrl}/revocations`;
  const usual = { authorization: `Bearer ${'k'.repeat(40)}`, 'content-type': 'application/json' };
  const revoke = async (value: unknown, headers: Environment = {}) =>
    (await post(url, JSON.stringify(value), { ...usual, ...headers })).status;
  expect(await revoke({ sub: 'ann' }, { 'content-type': 'text/plain' })).toBe(400);
  expect((await fetch(url)).status).toBe(405);
  expect(await status(service, ann)).toBe(200);
  expect(await revoke({ sub: 'a', issuer: 'https://other.example/' })).toBe(400);
  expect(await revoke({ sub: 'ann', issuer: provider.issuer })).toBe(204);
  await vi.waitFor(async () => expect(await status(service, ann)).toBe(401), limits);
  const words = ['revoke', '--client', 'app', '--admin', String(service.adminUrl)];
  const stdout = expect.stringMatching(/^Tokens that were issued before/);
  expect(await runCommand(words, { ADMIN_KEY_FILE: file })).toMatchObject({ status: 0, stdout, stderr: '' });
  const ofBob = async (iat: number) => status(service, await token({ sub: 'bob', iat }));
  expect([await ofBob(now() - 60), await ofBob(now())]).toEqual([401, 200]);
});

it('SHARED_SIGNALS: pushed events → tokens refused; a stale stream is degraded', async () => {
  const transmitter = await startTransmitter();
  onTestFinished(() => transmitter.stop());
  const [secret, file] = [join(folder, 'push'), join(folder, `streams.json`)];
  await writeFile(secret, 'Bearer pushed\n');
  const { stream, url } = transmitter;
  const idp = { transmitter: url, audience: stream.aud, authorizationFile: secret, verifyEvery: 1 };
  await writeFile(file, JSON.stringify({ streams: { idp } }));
  const service = await open({ SHARED_SIGNALS: file, NODE_EXTRA_CA_CERTS: transmitter.caFile });
  await service.findLog(({ event }) => event === 'signals_stream_opened');
  const usual = { authorization: 'Bearer pushed', 'content-type': 'application/secevent+jwt' };
  const push = async (text: string, headers: Environment = {}) =>
    (await post(`${service.url}/shared-signals/idp`, text, { ...usual, ...headers })).status;
  const subject = { format: 'iss_sub', iss: provider.issuer, sub: 'ann' };
  const event = transmitter.event(stream, eventTypes['account-disabled'], subject);
  expect(await push(event, { authorization: 'Bearer other' })).toBe(400);
  expect(await push('a'.repeat(100_000))).toBe(400);
  expect(await push(event)).toBe(202);
  const { body: metrics } = await askAdmin(service, '/metrics');
  expect(metrics).toContain('portcullis_signals_events_total{stream="idp",outcome="cutoff"} 1');
  const stale = { degraded: expect.arrayContaining(['stream idp']) };
  await vi.waitFor(async () => expect((await askAdmin(service, '/readyz')).json).toMatchObject(stale), limits);
  await service.findLog(({ event: logged }) => logged === 'signals_stream_stale');
  const about = { format: 'opaque', id: stream.stream_id };
  expect(await push(transmitter.event(stream, eventTypes.verification, about))).toBe(202);
  await service.findLog(({ event: logged }) => logged === 'signals_stream_verified');
  expect((await post(`${service.url}/shared-signals/other`, 'x')).status).toBe(404);
});

it('no source → the endpoints do not exist, and a token of a year passes', async () => {
  const service = await start({});
  expect(await logOut(service)).toBe(404);
  expect((await post(`${service.adminUrl}/revocations`, '{}')).status).toBe(404);
  expect(await status(service, await token({ exp: now() + 365 * 86_400 }))).toBe(200);
});

it('LOGOUT_SUBJECT → all tokens of the user', async () => {
  const service = await start({ LOGOUT_CLIENTS: 'app', LOGOUT_SUBJECT: 'true' });
  expect(await logOut(service)).toBe(200);
  expect(await status(service, await token({ sid: 'another' }))).toBe(401);
});

it('tokens without sid → counted', async () => {
  const service = await start({ LOGOUT_CLIENTS: 'app' });
  expect(await status(service, await token({ sid: undefined }))).toBe(200);
  expect((await askAdmin(service, '/metrics')).body).toContain('portcullis_tokens_without_session_total 1');
});

describe('REVOCATION_STORE in Redis', needs('redis-server'), () => {
  it('two instances → a logout at one is refused at the other; revoke and revoke --list', async () => {
    const redis = await startRedis();
    const environment = { LOGOUT_CLIENTS: 'app', REVOCATION_STORE: redis.url };
    const [first, second] = [await start(environment), await start(environment)];
    const ended = await token();
    expect([await status(first, ended), await status(second, ended)]).toEqual([200, 200]);
    expect(await logOut(first)).toBe(200);
    await vi.waitFor(
      async () => expect([await status(first, ended), await status(second, ended)]).toEqual([401, 401]),
      limits,
    );
    const settings = { REVOCATION_STORE: redis.url, ISSUER: provider.issuer };
    const bob = await runCommand(['revoke', '--sub', 'bob', '--before', new Date().toISOString()], settings);
    expect(bob).toMatchObject({ status: 0, stderr: '' });
    await vi.waitFor(async () => expect(await status(second, await token({ sub: 'bob', sid: 'x' }))).toBe(401), limits);
    const issuedAt = Math.floor(Date.now() / 1000);
    const { stdout } = await runCommand(['revoke', '--sub', 'carol'], settings);
    expect(stdout).toMatch(/^Tokens that were issued before this second .* is admitted\.\n$/);
    const carol = (iat: number) => token({ sub: 'carol', sid: 'c', iat });
    await vi.waitFor(async () => expect(await status(second, await carol(issuedAt - 1))).toBe(401), limits);
    expect(await status(second, await carol(Math.floor(Date.now() / 1000)))).toBe(200);
    const listed = await runCommand(['revoke', '--list'], settings);
    expect(listed.stdout.split('\n').sort()).toEqual([
      '',
      expect.stringMatching(/^sid=s1 issuer=\S+ before=\S+ event=logout until=\S+$/),
      expect.stringMatching(/^sub=bob issuer=\S+ .* event=revoke /),
      expect.stringMatching(/^sub=carol issuer=\S+ .* event=revoke /),
    ]);
    await redis.kill();
    const degraded = { status: 200, json: { degraded: ['revocation'] } };
    await vi.waitFor(async () => expect(await askAdmin(second, '/readyz')).toMatchObject(degraded), limits);
    expect(await status(second, ended)).toBe(401);
    expect(await logOut(first, { sid: 's3' })).toBe(400);
    const { body } = await askAdmin(second, '/metrics');
    expect(body).toMatch(/^portcullis_revocation_store_contact_seconds [1-9]/m);
  });

  it('Redis unreachable at startup → not ready; ready once it is loaded', async () => {
    const redis = await startRedis();
    await redis.kill();
    const service = await open({ REVOCATION_STORE: redis.url });
    expect((await askAdmin(service, '/readyz')).status).toBe(503);
    await redis.restart();
    await awaitReady(service);
  });
});

it.each<[readonly string[], Environment, number]>([
  [[], {}, 64],
  [['--sub', 'a', '--sid', 'b'], {}, 64],
  [['--subject', 'a'], {}, 64],
  [['--sub', ''], {}, 64],
  [['--sub', 'a', '--before', 'soon', '--issuer', 'https://x/'], {}, 64],
  [['--sub', 'a', '--before', 'yesterday 12', '--issuer', 'https://x/'], {}, 64],
  [['--sub', 'a', '--before', '11.12.2025', '--issuer', 'https://x/'], {}, 64],
  [['--sub', 'a', '--before', '99999999999', '--issuer', 'https://x/'], {}, 64],
  [['--sub', 'a'], {}, 64],
  [['--list', '--sub', 'a'], {}, 64],
  [['--sub', 'a', '--issuer', 'https://x/'], {}, 78],
  [['--list'], {}, 78],
  [['--sub', 'a', '--admin', 'http://127.0.0.1:9'], {}, 78],
  [['--sub', 'a', '--issuer', 'https://x/'], { REVOCATION_STORE: 'redis://127.0.0.1:9' }, 69],
  [['--help'], {}, 0],
])('portcullis revoke: %j with %j → exit status %i', async (args, environment, expected) => {
  const { status: seen, stderr } = await runCommand(['revoke', ...args], environment);
  expect([seen, stderr === '']).toEqual([expected, expected === 0]);
});

it('portcullis revoke without any setting → what to set', async () => {
  const { stderr } = await runCommand(['revoke', '--sub', 'a'], {});
  expect(stderr).toMatch(
    /write --issuer URL: .* REVOCATION_STORE is not a Redis\. Set it .* --admin URL .* ADMIN_KEY_FILE\./,
  );
});

describe('settings that cannot work → 78', () => {
  const stream = { transmitter: 'https://t.example', audience: 'a', authorizationFile: '/etc/hostname' };
  it.each<[string, Environment, unknown]>([
    ['a file that does not exist', { SHARED_SIGNALS: '/nonexistent.json' }, undefined],
    ['no streams', {}, { streams: {} }],
    ['a name that the schema drops', {}, { streams: { idp: stream, constructor: stream } }],
    ['an unknown member', {}, { streams: { idp: { ...stream, extra: 1 } } }],
    ['an earlier member', {}, { streams: { idp: { ...stream, delivery: 'push' } } }],
    ['a transmitter with a query', {}, { streams: { idp: { ...stream, transmitter: 'https://t.example/?a' } } }],
    ['no audience', {}, { streams: { idp: { ...stream, audience: undefined } } }],
    ['no authorizationFile', {}, { streams: { idp: { ...stream, authorizationFile: undefined } } }],
    ['an authorizationFile that does not exist', {}, { streams: { idp: { ...stream, authorizationFile: '/x' } } }],
    ['a key that does not exist', { ADMIN_KEY_FILE: '/nonexistent' }, undefined],
    ['an empty key', { ADMIN_KEY_FILE: '/dev/null' }, undefined],
    ['a key without an admin listener', { ADMIN_KEY_FILE: '/dev/null', ADMIN_PORT: 'off' }, undefined],
  ])('%s', async (_title, environment, streams) => {
    const file = join(folder, 'bad.json');
    await writeFile(file, JSON.stringify(streams ?? {}));
    const settings = {
      IDP_DOMAIN: 'idp.example',
      IDP_AUDIENCE: 'a',
      ...(streams !== undefined && { SHARED_SIGNALS: file }),
      ...environment,
    };
    const error = await openService({ environment: settings }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ServiceStartError);
    expect((error as ServiceStartError).end.code).toBe(78);
  });
});
