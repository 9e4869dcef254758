import { stat } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openConsoleKey, refuseOutsiders } from '../../src/console/server/entrance.ts';
import { enterConsole, makeKeyFolder, useConsole } from '../support/console-client.ts';
import { send } from '../support/http-client.ts';
import { openService } from '../support/open-service.ts';
import { startInVain } from '../support/variant-service.ts';
import { words } from '../support/words.ts';

const provider = { IDP_DOMAIN: '127.0.0.1:9', IDP_AUDIENCE: 'urn:api' };

describe('the entrance of the console', async () => {
  const opened = await useConsole((environment) => openService({ environment: { ...provider, ...environment } }));
  const { folder, service, admin } = opened;
  const [, cookie] = opened.cookie;

  const get = (path: string, ...headers: string[]) => send(admin, path, { headers: ['Cookie', cookie, ...headers] });
  const post = (...headers: string[]) =>
    send(admin, '/console/api/try', {
      method: 'POST',
      headers: ['Cookie', cookie, 'Content-Type', 'application/json', ...headers],
      body: '{}',
    });
  const paths = words('/console /console/page.js /console/style.css /console/api/state /console/api/events /console/x');

  it.each(paths)('%s without the key → 401, and no page', async (path) => {
    const answer = await send(admin, path);
    expect(answer.status).toBe(401);
    expect(answer.body).not.toContain('<');
  });

  it('with the cookie: the page, its style, its scripts, the state', async () => {
    for (const [path, type] of [
      ['', 'text/html'],
      ['/style.css', 'text/css'],
      ['/page.js', 'text/javascript'],
      ['/shared-page.js', 'text/javascript'],
      ['/api/state', 'application/json'],
    ]) {
      const { status, headers } = await get(`/console${path}`);
      expect([path, status, headers.get('content-type')?.replace(/;.*/, '')]).toEqual([path, 200, type]);
    }
    expect((await get('/console/nothing')).status).toBe(404);
    expect((await get('/console/../package.json')).status).toBe(404);
    expect((await send(admin, '/console', { method: 'DELETE', headers: ['Cookie', cookie] })).status).toBe(405);
  });

  it('style → no empty rule, and every colour is used', async () => {
    const { body } = await get('/console/style.css');
    expect(body).not.toMatch(/\{\s*\}/);
    const names = [...new Set(body.match(/--[\w-]+(?=:)/g))];
    expect(names.filter((name) => !body.includes(`var(${name})`))).toEqual([]);
  });

  it('the cookie: not for scripts, not for other sites, for the console only; a wrong one → 401', async () => {
    const answer = await send(admin, `/console?key=${await folder.readKey()}`);
    const [value = '', ...attributes] = (answer.headers.get('set-cookie') ?? '').split('; ');
    expect(value).toMatch(new RegExp(`^portcullis_console_${new URL(admin).port}=\\d+\\.[\\w-]{43}$`));
    expect(attributes).toEqual(expect.arrayContaining(['Path=/console', 'HttpOnly', 'SameSite=Strict']));
    const [, end = '', signature = ''] = /=(\d+)\.(.*)$/.exec(value) ?? [];
    const later = value.replace(end, `${Number(end) + 1}`);
    const emptied = [value.replace(signature, ''), value.replace(/=.*/, '=')];
    for (const cookie of [`${value}x`, later, ...emptied, value.replace(/_\d+=/, '_1=')])
      expect((await send(admin, '/console', { headers: ['Cookie', cookie] })).status, cookie).toBe(401);
    expect(answer.body).not.toContain(await folder.readKey());
  });

  it('the key: its file is for its owner only; it opens the console until the service stops, with GET', async () => {
    const key = await folder.readKey();
    expect((await stat(folder.file)).mode & 0o777).toBe(0o600);
    expect((await send(admin, `/console?key=${key}`, { method: 'HEAD' })).status).toBe(401);
    expect((await send(admin, `/console?key=${key.slice(1)}`)).status).toBe(401);
    expect((await send(admin, '/console?key=')).status).toBe(401);
    for (let times = 0; times < 2; times++) await enterConsole(admin, key);
    expect(await folder.readKey()).toBe(key);
  });

  it('cookie → valid for 12 hours, and only with the key of this start', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const other = await makeKeyFolder();
    try {
      const key = await openConsoleKey(other.file);
      const [value = ''] = key.writeCookie(1).split(';');
      const has = (cookie: string, of = key): boolean => of.hasCookie(`a=b; ${cookie}`, 1);
      expect([has(value), key.hasCookie(value, 2), key.hasCookie(undefined, 1)]).toEqual([true, false, false]);
      vi.setSystemTime(Date.now() + 12 * 3600 * 1000 - 1000);
      expect(has(value)).toBe(true);
      vi.setSystemTime(Date.now() + 2000);
      expect(has(value)).toBe(false);
      const later = await openConsoleKey(other.file);
      expect(has(later.writeCookie(1).split(';')[0] ?? '')).toBe(false);
      // The file of a later start stays.
      await key.close();
      expect(later.matches(await other.readKey())).toBe(true);
      await later.close();
      await expect(other.readKey()).rejects.toThrow('ENOENT');
    } finally {
      vi.useRealTimers();
      await other.close();
    }
  });

  it('the key in a header reads what the cookie reads', async () => {
    const headers = ['Authorization', `Bearer ${await folder.readKey()}`];
    expect((await send(admin, '/console/api/decisions/none', { headers })).status).toBe(404);
    expect((await send(admin, '/console/api/state', { headers })).status).toBe(200);
    for (const wrong of [`Bearer ${'x'.repeat(43)}`, 'Bearer ', `Basic ${await folder.readKey()}`]) {
      const answer = await send(admin, '/console/api/decisions/none', { headers: ['Authorization', wrong] });
      expect(answer.status, wrong).toBe(401);
    }
  });

  const foreign = words(`
    evil.example localhost.evil.example 127.0.0.1.evil.example notlocalhost 10.0.0.1:9464 0.0.0.0 [2001:db8::1] 128.0.0.1
  `);
  it.each([...foreign, ''])('Host %j → 421, key and cookie or not', async (host) => {
    const key = await folder.readKey();
    expect((await get('/console', 'Host', host)).status).toBe(421);
    expect((await send(admin, `/console?key=${key}`, { headers: ['Host', host] })).status).toBe(421);
    expect(await folder.readKey()).toBe(key);
  });

  it.each(['localhost', 'LOCALHOST:1', 'console.localhost:9464', '127.0.0.1', '127.8.8.8:80', '[::1]:9464'])(
    'Host %j is a name of this machine',
    async (host) => expect((await get('/console', 'Host', host)).status).toBe(200),
  );

  it.each(['Forwarded', 'X-Forwarded-For', 'X-Forwarded-Proto', 'x-forwarded-host', 'X-Forwarded-Anything'])(
    '%s → 403: a proxied client may be on another host',
    async (name) => expect((await get('/console', name, 'for=127.0.0.1')).status).toBe(403),
  );

  it('a peer that is not loopback → 403', () => {
    const come = (remoteAddress: string | undefined) =>
      refuseOutsiders({ headers: { host: 'localhost' }, socket: { remoteAddress } } as IncomingMessage)?.status; // all that is read
    const statusesOf = (...peers: readonly (string | undefined)[]) => new Set(peers.map(come));
    expect(statusesOf('127.0.0.1', '127.0.0.9', '::1', '::ffff:127.0.0.1')).toEqual(new Set([undefined]));
    const others = words('10.0.0.1 192.168.1.1 ::ffff:10.0.0.1 2001:db8::1 1.127.0.0');
    expect(statusesOf(...others, undefined)).toEqual(new Set([403]));
  });

  it('POST: only from the page itself', async () => {
    const own = `http://${new URL(admin).host}`;
    const foreign = [
      [],
      ['Origin', own],
      ['Sec-Fetch-Site', 'same-origin'],
      ['Origin', 'https://evil.example', 'Sec-Fetch-Site', 'cross-site'],
      ['Origin', 'http://127.0.0.1:1', 'Sec-Fetch-Site', 'same-site'],
      ['Origin', 'null', 'Sec-Fetch-Site', 'same-origin'],
      ['Origin', own, 'Sec-Fetch-Site', 'none'],
      ['Origin', own.replace('http', 'https'), 'Sec-Fetch-Site', 'same-origin'],
    ];
    for (const headers of foreign) expect((await post(...headers)).status, headers.join(' ')).toBe(403);
    // There is nothing to try without the local provider.
    const page = await post('Origin', own, 'Sec-Fetch-Site', 'same-origin');
    expect([page.status, page.body]).toEqual([404, 'Try it is available in portcullis dev only.\n']);
  });

  it('GET: nothing for another page, also on another port of this machine; a link leads in', async () => {
    for (const site of ['cross-site', 'same-site']) {
      expect((await get('/console/api/state', 'Sec-Fetch-Site', site, 'Sec-Fetch-Mode', 'cors')).status).toBe(403);
      expect((await get('/console/page.js', 'Sec-Fetch-Site', site, 'Sec-Fetch-Mode', 'no-cors')).status).toBe(403);
      const frame = ['Sec-Fetch-Site', site, 'Sec-Fetch-Mode', 'navigate', 'Sec-Fetch-Dest', 'iframe'];
      expect((await get('/console', ...frame)).status).toBe(403);
    }
    const link = ['Sec-Fetch-Site', 'cross-site', 'Sec-Fetch-Mode', 'navigate', 'Sec-Fetch-Dest', 'document'];
    expect((await get('/console', ...link)).status).toBe(200);
  });

  it('every response → not stored, no inline script, no other origin, no frame, Trusted Types', async () => {
    const shown = [await get('/console'), await get('/console/api/state')];
    for (const { headers } of [...shown, await send(admin, '/console'), await get('/console', 'Host', 'x')]) {
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('access-control-allow-origin')).toBeUndefined();
      const policy = headers.get('content-security-policy') ?? '';
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).toContain("require-trusted-types-for 'script'");
      expect(policy).not.toMatch(/unsafe|https?:|data:|\*|nonce|sha256/);
    }
    expect((await get('/console')).body).not.toMatch(/<script(?![^>]*\bsrc=)|\bon\w+=|\bstyle=|https?:/);
  });

  it('other endpoints of the listener → unchanged', async () => {
    expect((await send(admin, '/healthz')).status).toBe(200);
    expect((await send(admin, '/consoles')).status).toBe(404);
    expect((await send(service.url, '/console')).status).toBe(404);
  });
});

describe('the settings of the console', () => {
  it('CONSOLE=off → 404, which is the default', async () => {
    const { adminUrl = '', stop } = await openService({ environment: provider });
    onTestFinished(async () => void (await stop()));
    expect((await send(adminUrl, '/console')).status).toBe(404);
    expect((await send(adminUrl, '/console?key=x', { headers: ['Host', 'x'] })).status).toBe(404);
  });

  it.each([
    [{ CONSOLE: 'on' }, 'CONSOLE_KEY_FILE'],
    [{ CONSOLE: 'on', CONSOLE_KEY_FILE: '/tmp/key', ADMIN_PORT: 'off' }, 'CONSOLE'],
    [{ CONSOLE: 'on', CONSOLE_KEY_FILE: '/nonexistent/folder/key' }, 'CONSOLE_KEY_FILE'],
    [{ CONSOLE: 'yes' }, 'CONSOLE'],
  ])('%j → 78, naming %s', async (environment, name) => {
    const { end, stderr } = await startInVain(openService({ environment: { ...provider, ...environment } }));
    expect(end.code).toBe(78);
    expect(stderr).toContain(name);
  });

  it('the file of the key is gone when the service has ended', async () => {
    const folder = await makeKeyFolder();
    onTestFinished(folder.close);
    const service = await openService({ environment: { ...provider, ...folder.environment } });
    expect(await folder.readKey()).toMatch(/^[\w-]{43}$/);
    expect(await service.stop()).toBe(0);
    await expect(folder.readKey()).rejects.toThrow('ENOENT');
  });
});
