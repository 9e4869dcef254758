import { readFileSync } from 'node:fs';
import { startRedis } from '../../tools/shared/redis.js';

/** A real Redis on a loopback port, without persistence. */
export type TestRedis = Awaited<ReturnType<typeof startRedis>>;

/** Starts Redis. Rejects if it does not start. */
export const startTestRedis: (options?: {
  readonly password?: string;
  readonly flags?: readonly string[];
}) => Promise<TestRedis> = startRedis;

/** Adds a user with the commands that a page of the documentation names after `its user needs`, on some keys. Returns its URL. */
export async function addDocumentedUser({ url, command }: TestRedis, page: string, keys: string): Promise<string> {
  const [, names = ''] = /its user needs\s+([A-Z,\s]+and [A-Z]+)/.exec(readFileSync(page, 'utf8')) ?? [];
  const commands = names.match(/[A-Z]{3,}/g) ?? [];
  const rules = ['on', '>limited', `~${keys}`, `&${keys}`, ...commands.map((name) => `+${name.toLowerCase()}`)];
  if (!(await command('ACL', 'SETUSER', 'limited', ...rules)).startsWith('+OK')) throw new Error('no user was added');
  return url.replace('//', '//limited:limited@');
}
