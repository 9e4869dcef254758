// npm run bench -- first: processor time of the first verification in a fresh process, with keys that were cached.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { createTestIssuer } from '../../dist/testing/index.js';
import { median } from '../shared/statistics.js';

const program = `
const { keys, token, issuer, audience } = JSON.parse(process.env.CASE);
const { createResourceServer } = await import(${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)});
const keyCache = { read: async () => ({ keys, fetchedAt: Math.floor(Date.now() / 1000) - 60 }), write() {} };
const server = createResourceServer({ issuer, audience, keyCache });
const headers = new Headers({ authorization: 'Bearer ' + token });
const before = process.cpuUsage();
await server.authorize({ method: 'GET', url: audience, headers });
const { user, system } = process.cpuUsage(before);
console.log((user + system) / 1000);`;

/** Prints the median and the largest figure of fresh processes. */
export async function bench({ quick, rounds = quick ? 10 : 40 }) {
  const { issuer, audience, jwks, token } = createTestIssuer();
  const env = { ...process.env, CASE: JSON.stringify({ keys: jwks.keys, token: token(), issuer, audience }) };
  const cwd = fileURLToPath(new URL('../../', import.meta.url));
  const run = () => Number(execFileSync(process.execPath, ['--input-type=module', '-e', program], { env, cwd }));
  const found = Array.from({ length: rounds }, run);
  console.log(
    `first token, cached keys: ${median(found).toFixed(1)} ms of processor time, at most ${Math.max(...found).toFixed(1)} ms`,
  );
  return true;
}
