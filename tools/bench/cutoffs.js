// npm run bench -- cutoffs: the memory of cutoffs, and the time of a cached token of the library among them. The fastest round
// counts, which other programs hardly change.
import { randomUUID } from 'node:crypto';
import { createResourceServer } from '../../build/core/resource-server/resource-server.js';
import { createRevocations, readRevocations } from '../../build/core/revocation/revocations.js';
import { createTestIssuer } from '../../build/testing/index.js';

const testIssuer = createTestIssuer();
const { issuer, audience } = testIssuer;
const headers = new Headers({ authorization: `Bearer ${testIssuer.token({ sid: randomUUID() })}` });
const requests = 1000;

function heap() {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

/** Opens a resource server with N cutoffs, none of which matches the token; without N no source is configured. */
async function open(count) {
  const before = heap();
  const revocations = count === undefined ? undefined : createRevocations();
  const parts = revocations && readRevocations('bench', revocations);
  for (let i = 0; i < (count ?? 0); i += 1000) {
    const cutoffs = Array.from({ length: Math.min(1000, count - i) }, (_, j) => {
      const kind = ['sub', 'sid', 'client_id', 'jti'][j % 4];
      // Parsed, like the values of a token: a flat string.
      return { issuer, kind, value: JSON.parse(`"${randomUUID()}"`), before: Date.now() / 1000, event: 'logout' };
    });
    await parts?.set(/** @type {any} */ (cutoffs));
  }
  const mebibytes = Math.max(0, heap() - before);
  return { count, mebibytes, server: createResourceServer({ issuers: [testIssuer], audience, revocations }) };
}

/** Prints the time and the memory by the number of cutoffs. */
export async function bench({ quick, rounds = quick ? 20 : 120 }) {
  for (const count of [undefined, 0, 1000, 100_000, ...(quick ? [] : [1_000_000])]) {
    const { server, mebibytes } = await open(count);
    let least = Number.POSITIVE_INFINITY;
    for (let round = 0; round < rounds; round++) {
      const started = process.hrtime.bigint();
      for (let i = 0; i < requests; i++) await server.authorize({ method: 'GET', url: audience, headers });
      least = Math.min(least, Number(process.hrtime.bigint() - started) / requests);
    }
    console.log(`${count ?? 'no source of'} cutoffs: ${(least / 1000).toFixed(1)} µs, ${mebibytes.toFixed(1)} MiB`);
    server.close();
  }
}
