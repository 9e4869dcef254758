import { once } from 'node:events';
import { lstat, mkdir, readFile, rename, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { errorBodyFormats } from '../../../src/core/refusal/error-body.ts';
import { describeListenFailure, type Listener, listen, openListener } from '../../../src/server/listener/listener.ts';
import { useFolder } from '../../support/folder.ts';

const folder = useFolder();
const listeners: Listener[] = [];

afterAll(() => Promise.all(listeners.map((each) => each.close(0))));

const options = { onRequest: () => {}, keepAlive: 5, errorBody: errorBodyFormats.detail };

/** Listens on a path, removing what the listener considers stale. */
async function open(path: string): Promise<void> {
  listeners.push(await listen({ ...options, host: `unix:${path}`, port: 0 }));
}

/** A socket without a listener, as a killed process leaves it: Node removes the name that it has bound, not the new one. */
async function leaveSocket(path: string): Promise<void> {
  const server = createServer().listen(`${path}.bound`);
  await once(server, 'listening');
  await rename(`${path}.bound`, path);
  await once(server.close(), 'close');
}

describe('HOST=unix:PATH where the path exists', () => {
  it('a socket that refuses connections → replaced', async () => {
    const path = join(folder, 'stale.sock');
    await leaveSocket(path);
    await open(path);
    expect((await lstat(path)).isSocket()).toBe(true);
  });

  const kept: readonly [string, (path: string) => Promise<unknown>][] = [
    ['a regular file', (path) => writeFile(path, 'content')],
    ['an empty folder', (path) => mkdir(path)],
    [
      'a link to a socket that refuses connections',
      (path) => leaveSocket(`${path}.sock`).then(() => symlink(`${path}.sock`, path)),
    ],
    [
      'a link to a regular file',
      (path) => writeFile(`${path}.txt`, 'content').then(() => symlink(`${path}.txt`, path)),
    ],
    ['a socket that accepts connections', open],
  ];
  it.each(kept)('%s → EADDRINUSE, and it is unchanged', async (claim, make) => {
    const path = join(folder, claim.replaceAll(' ', '-'));
    await make(path);
    const before = await lstat(path);
    await expect(open(path)).rejects.toThrow('EADDRINUSE');
    const after = await lstat(path);
    expect([after.ino, after.mode]).toEqual([before.ino, before.mode]);
    if (after.isFile()) expect(await readFile(path, 'utf8')).toBe('content');
  });
});

const settings = { host: 'ADMIN_HOST', port: 'PORTCULLIS_ADMIN_PORT' };
const say = (code: string | undefined, host = '127.0.0.1') =>
  describeListenFailure({ host, port: 80 }, settings, Object.assign(new Error('listen'), code && { code }));

describe('an unavailable address → cause and fix', () => {
  it.each([
    ['EADDRINUSE', '127.0.0.1', /; set PORTCULLIS_ADMIN_PORT to another port, or stop the program that uses it$/],
    [
      'EADDRINUSE',
      'unix:/run/x',
      /; a file or a socket in use is there\. Set ADMIN_HOST to another path, or remove it$/,
    ],
    ['EADDRNOTAVAIL', '192.0.2.1', /; this host has no such address\. Set ADMIN_HOST to 127/],
    ['EACCES', '127.0.0.1', /below 1024\. Set PORTCULLIS_ADMIN_PORT to 1024 or more, or/],
    ['EACCES', 'unix:/run/x', /may not write there\. Set ADMIN_HOST to another path/],
    ['ENOENT', 'unix:/none/x', /; its folder does not exist/],
    ['ENOTDIR', 'unix:/dev/null/x', /; the system reports ENOTDIR\. Correct ADMIN_HOST$/],
    ['ENOTFOUND', 'nowhere.invalid', /; the name has no address\. Set ADMIN_HOST/],
    ['EAI_AGAIN', 'nowhere.invalid', /; the name has no address/],
    ['EAFNOSUPPORT', '::1', /Set ADMIN_HOST to an IPv4 address$/],
    ['EMFILE', '127.0.0.1', /; the system reports EMFILE\. Correct ADMIN_HOST or PORTCULLIS_ADMIN_PORT$/],
    ['constructor', '127.0.0.1', /the system reports constructor/],
    [undefined, '127.0.0.1', /the system reports unknown/],
  ])('%s of %s → %s', (code, host, words) => {
    expect(say(code, host)).toMatch(words);
    const shown = host === '::1' ? '[::1]:80' : host.startsWith('unix:') ? host : `${host}:80`;
    expect(say(code, host)).toContain(`cannot listen on ${shown}; `);
  });

  it('a unix socket in a folder that does not exist, which Node reports as EACCES → the folder', async () => {
    const opened = openListener({ ...options, host: `unix:${join(folder, 'none', 'x')}`, port: 0 }, settings);
    await expect(opened).rejects.toThrow(
      '; its folder does not exist. Create the folder, or set ADMIN_HOST to another',
    );
  });

  it('only an address in use → "stop the program that uses it"', () => {
    const codes = ['EADDRNOTAVAIL', 'EACCES', 'ENOENT', 'ENOTFOUND', 'EAFNOSUPPORT', 'EMFILE'];
    expect(codes.filter((code) => say(code).includes('stop the program'))).toEqual([]);
  });
});
