import { X509Certificate } from 'node:crypto';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { ensureIdentity, readIdentity } from '../../src/dev/provider/identity.ts';
import { useFolder } from '../support/folder.ts';

const now = Math.floor(Date.now() / 1000);
const base = useFolder();
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(base, 'each-'));
});

test('certificate → for localhost and 127.0.0.1, a year, and able to sign no other', async () => {
  const { certificate, expires } = await ensureIdentity(folder, now);
  const parsed = new X509Certificate(certificate);
  expect(parsed.checkHost('localhost')).toBe('localhost');
  expect(parsed.checkIP('127.0.0.1')).toBe('127.0.0.1');
  expect(parsed.checkHost('example.com')).toBeUndefined();
  expect(parsed.ca).toBe(false);
  expect(expires).toBe(now + 365 * 86_400);
});

test('kept identity → read back unchanged', async () => {
  const made = await ensureIdentity(folder, now);
  expect(await readIdentity(folder)).toEqual(made);
  expect(await ensureIdentity(folder, now)).toEqual(made);
  expect(await readdir(folder)).toEqual(['identity']);
});

test('nothing kept → undefined', async () => expect(await readIdentity(folder)).toBeUndefined());

test('several starts at once → one identity for all', async () => {
  const [first, ...others] = await Promise.all(Array.from({ length: 4 }, () => ensureIdentity(folder, now)));
  for (const other of others) expect(other).toEqual(first);
  expect(await readIdentity(folder)).toEqual(first);
  expect(await readdir(folder)).toEqual(['identity']);
});

test.each<[string, (path: (name: string) => string) => Promise<unknown>]>([
  ['certificate damaged', (path) => writeFile(path('certificate.pem'), 'damaged')],
  ['key damaged', (path) => writeFile(path('key.pem'), 'damaged')],
  ['key gone', (path) => rm(path('key.pem'))],
  ['secret cut', (path) => writeFile(path('client-secret'), 'short')],
  ['secret gone', (path) => rm(path('client-secret'))],
  ['no folder but a file', (path) => rm(path('.'), { recursive: true }).then(() => writeFile(path('.'), ''))],
  [
    'key of another certificate',
    async (path) => {
      const other = join(folder, 'other');
      await mkdir(other);
      await ensureIdentity(other, now);
      await cp(join(other, 'identity', 'key.pem'), path('key.pem'));
      await rm(other, { recursive: true });
    },
  ],
])('%s → a new identity', async (_name, damage) => {
  const before = await ensureIdentity(folder, now);
  await damage((name) => join(folder, 'identity', name).replace(/\/\.$/, ''));
  expect(await readIdentity(folder)).toBeUndefined();
  const after = await ensureIdentity(folder, now);
  expect(after.certificate).not.toBe(before.certificate);
  expect(after.clientSecret).not.toBe(before.clientSecret);
  expect(await readIdentity(folder)).toEqual(after);
  expect(await readFile(after.certificateFile, 'utf8')).toBe(after.certificate);
});
