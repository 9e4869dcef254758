import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { useFolder } from '../support/folder.ts';
import { exchange, openRaw, readStatuses } from '../support/http-client.ts';
import { signLogout } from '../support/logout.ts';
import { type OpenedService, openService } from '../support/open-service.ts';
import { awaitReady } from '../support/service-process.ts';
import { statusOf, useSessions } from '../support/sessions.ts';
import { useTestProvider } from '../support/test-provider.ts';

const provider = await useTestProvider();
const folder = useFolder();
const { settingsOf, start } = useSessions(provider);
let service: OpenedService;
const key = 'k'.repeat(40);

beforeAll(async () => {
  await writeFile(join(folder, 'key'), key);
  service = await openService(settingsOf({ LOGOUT_CLIENTS: 'app', ADMIN_KEY_FILE: join(folder, 'key') }));
  await awaitReady(service);
});
afterAll(() => service?.stop());

let serial = 0;
/** A new session: its access token, and the form that ends it. */
async function createSession() {
  const sid = `session-${++serial}`;
  const logout = await signLogout(provider, sid);
  return { sid, token: await provider.sign({ sid }), logout, form: `logout_token=${logout}` };
}
const get = (token: string, more = ''): string =>
  `GET /api/private HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer ${token}\r\n${more}\r\n`;
const post = (
  body: string,
  { target = '/backchannel-logout', framing = `Content-Length: ${body.length}`, more = '' },
) =>
  `POST ${target} HTTP/1.1\r\nHost: api.test\r\nContent-Type: application/x-www-form-urlencoded\r\n${more}${framing}\r\n\r\n${body}`;
const chunked = (body: string, size: number): string => {
  const pieces = body.match(new RegExp(`.{1,${size}}`, 'gs')) ?? [];
  return `${pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`).join('')}0\r\n\r\n`;
};
const last = 'Connection: close\r\n';

/** Sends requests on one connection, each after the response to the one before. */
async function converse(port: number, ...requests: readonly string[]): Promise<readonly number[]> {
  const connection = openRaw(port);
  onTestFinished(() => void connection.destroy());
  for (const [index, request] of requests.entries()) {
    connection.write(request);
    await connection.receive(new RegExp(`^(?:(?:(?!HTTP/1.1 [2-5])[\\s\\S])*HTTP/1.1 [2-5]){${index + 1}}`));
  }
  return readStatuses(await connection.receive(/HTTP/)).filter((status) => status !== 100);
}

describe('a logout token on the wire', () => {
  it('call, logout, the same call on one connection → 200, 200, 401', async () => {
    const { token, form } = await createSession();
    expect(await converse(service.port, get(token), post(form, {}), get(token))).toEqual([200, 200, 401]);
  });

  it.each([
    ['in chunks of one byte', (form: string) => post(chunked(form, 1), { framing: 'Transfer-Encoding: chunked' })],
    ['with a complete URL', (form: string) => post(form, { target: 'http://api.test/backchannel-logout' })],
    ['with a query', (form: string) => post(form, { target: '/backchannel-logout?client=app' })],
    ['with an invalid access token', (form: string) => post(form, { more: 'Authorization: Bearer x.y.z\r\n' })],
    ['with a DPoP header', (form: string) => post(form, { more: 'DPoP: x\r\n' })],
    ['with another Host', (form: string) => post(form, {}).replace('Host: api.test', 'Host: other.example')],
  ])('%s → 200, and the session has ended', async (_title, write) => {
    const { token, form } = await createSession();
    expect(await converse(service.port, write(form), get(token))).toEqual([200, 401]);
  });

  it('100-continue → the token is read after it', async () => {
    const { token, form } = await createSession();
    const connection = openRaw(service.port);
    connection.write(post(form, { more: 'Expect: 100-continue\r\n' }).slice(0, -form.length));
    await connection.receive(/100 Continue/);
    connection.write(form);
    await connection.receive(/ 200 OK/);
    connection.write(get(token, last));
    expect(readStatuses(await connection.closed)).toEqual([100, 200, 401]);
  });

  it.each([
    ['a trailing slash', '/backchannel-logout/'],
    ['two slashes', '//backchannel-logout'],
    ['capitals', '/Backchannel-Logout'],
    ['an encoded character', '/backchannel%2Dlogout'],
    ['dot segments', '/x/../backchannel-logout'],
    ['a parameter', '/backchannel-logout;x'],
  ])('the path with %s → not the endpoint, and the session goes on', async (_title, target) => {
    const { token, form } = await createSession();
    const received = await exchange(service.port, post(form, { target }) + get(token, last));
    const statuses = readStatuses(received);
    expect(statuses.at(-1)).toBe(200);
    expect(statuses[0]).toBeGreaterThanOrEqual(400);
  });

  it.each([
    ['two Content-Type', (form: string) => post(form, { more: 'Content-Type: text/plain\r\n' })],
    ['a token in the query', (form: string) => post('', { target: `/backchannel-logout?${form}` })],
    [
      'a body of 20 KiB in chunks',
      (form: string) =>
        post(chunked(`pad=${'a'.repeat(20_000)}&${form}`, 1000), { framing: 'Transfer-Encoding: chunked' }),
    ],
    ['a length of 20 KiB', (form: string) => post(`pad=${'a'.repeat(20_000)}&${form}`, {})],
    [
      'Content-Length and chunks',
      (form: string) =>
        post(chunked(form, 100), { framing: `Content-Length: ${form.length}\r\nTransfer-Encoding: chunked` }),
    ],
  ])('%s → 4xx, and the session goes on', async (_title, write) => {
    const { token, form } = await createSession();
    const [first] = readStatuses(await exchange(service.port, write(form) + get(token, last)));
    expect(first).toBeGreaterThanOrEqual(400);
    expect(first).toBeLessThan(500);
    expect(await statusOf(service, token)).toBe(200);
  });

  it('no log line has the token, the session or the user', async () => {
    const { token, form, sid, logout } = await createSession();
    await converse(service.port, post(form, {}), get(token));
    await service.findLog(({ reason }) => reason === 'revoked_token');
    const text = JSON.stringify(service.logs);
    for (const secret of [sid, logout, token, token.split('.')[1] ?? '', 'user|1']) expect(text).not.toContain(secret);
  });
});

describe('a flood', () => {
  it('20 invalid tokens → 429 with Retry-After for this peer, and access tokens are validated as before', async () => {
    const own = await start({ LOGOUT_CLIENTS: 'app', TRUST_PROXY: '127.0.0.1' });
    const { token, form } = await createSession();
    const from = (address: string, body: string) =>
      post(body, { more: `X-Forwarded-For: ${address}\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: api.test\r\n` });
    const slow = openRaw(own.port);
    onTestFinished(() => void slow.destroy());
    const late = from('192.0.2.1', form);
    slow.write(late.slice(0, -1));
    const flood = Array.from({ length: 21 }, () => from('192.0.2.1', 'logout_token=x'));
    const statuses = await converse(own.port, ...flood, late, get(token));
    expect(statuses).toEqual([...Array(20).fill(400), 429, 429, 200]);
    // Its head was there before the others.
    slow.write(late.slice(-1));
    expect(await slow.receive(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 429 [\s\S]*retry-after: ([1-9]|10)\r\n/i);
    expect(await converse(own.port, from('192.0.2.2', form), get(token))).toEqual([200, 401]);
  });
});

describe('POST /revocations on the wire', () => {
  const write = (body: string, more = `Authorization: Bearer ${key}\r\n`, path = '/revocations', method = 'POST') =>
    `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n${more}${last}Content-Length: ${Buffer.byteLength(body, 'latin1')}\r\n\r\n${body}`;
  const admin = (bytes: string) => exchange(Number(new URL(String(service.adminUrl)).port), bytes);

  it.each([
    ['a duplicate member', '{"sid":"s","sid":"t"}'],
    ['a nested value', '{"sid":{"a":1}}'],
    ['two values', '{"sid":"s"}{"sid":"t"}'],
    ['a prototype', '{"__proto__":{"sid":"s"},"sub":"s"}'],
    ['a value of 1,025 characters', `{"sid":"${'s'.repeat(1025)}"}`],
    ['20 KiB', `{"sid":"s","x":"${'s'.repeat(20_000)}"}`],
    ['invalid UTF-8', '{"sid":"\xff"}'],
    ['another issuer that is not a string', '{"sid":"s","issuer":7}'],
    ['a time in milliseconds', `{"sub":"s","before":${Date.now()}}`],
    ['a time in the future', `{"sub":"s","before":${Math.floor(Date.now() / 1000) + 60}}`],
    ['a time that is not a number', '{"sub":"s","before":"x"}'],
    ['no member', '{}'],
    ['a list', '[]'],
    ['a user and a session', '{"sub":"a","sid":"b"}'],
    ['a number', '{"sub":7}'],
    ['an empty name', '{"sub":""}'],
    ['an unknown member', '{"sub":"a","other":1}'],
  ])('%s → 400, without a body', async (_title, body) => {
    const received = await admin(write(body));
    expect(readStatuses(received)).toEqual([400]);
    expect(received).toMatch(/\r\n\r\n(0\r\n\r\n)?$/);
  });

  it.each([
    ['no key', ''],
    ['the key in another scheme', `Authorization: Basic ${key}\r\n`],
    ['a prefix of the key', `Authorization: Bearer ${key.slice(0, -1)}\r\n`],
    ['the key and a space', `Authorization: Bearer ${key} x\r\n`],
  ])('%s → 401 with a challenge', async (_title, more) => {
    const received = await admin(write('{"sid":"s"}', more));
    expect(readStatuses(received)).toEqual([401]);
    expect(received).toMatch(/www-authenticate: bearer/i);
  });

  it('the main listener → 404: the endpoint is on the admin listener alone', async () =>
    expect(readStatuses(await exchange(service.port, write('{"sid":"s"}')))).toEqual([404]));

  it('a page of another origin, by a host name that leads here → no cutoff', async () => {
    const { token, sid } = await createSession();
    const bytes = write(`{"sid":"${sid}"}`).replace('Host: 127.0.0.1', 'Host: rebound.example');
    const [status] = readStatuses(await admin(bytes.replace(`Authorization: Bearer ${key}\r\n`, '')));
    expect(status).toBeGreaterThanOrEqual(400);
    expect(await statusOf(service, token)).toBe(200);
  });
});
