// What a request costs as tokens, key sets and scopes grow: in this process, where µs can be told apart.
import { createStaticKeySet } from '../../../build/core/keys/static-key-set.js';
import { createResourceServer } from '../../../build/core/resource-server/resource-server.js';
import { median } from '../../shared/statistics.js';
import { makeClaims, makeKeyPair, signJws } from '../../shared/tokens.js';

const issuer = 'https://idp.example/';
const audience = 'https://api.example.com/';
const rounds = 5;
const count = 300;
const repeats = 10;
const now = Math.floor(Date.now() / 1000);

const pair = makeKeyPair('rsa', { modulusLength: 2048 });
const describe = (publicKey, kid) => ({ ...publicKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' });
/** Returns an EC key for the set, in addition to the signing key. */
const otherKey = (_, i) => ({
  ...makeKeyPair('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' }),
  kid: `other-${i}`,
  alg: 'ES256',
  use: 'sig',
});
const mint = (claims) =>
  signJws({ alg: 'RS256', typ: 'JWT', kid: 'k' }, makeClaims({ issuer, audience, now, claims }), pair.privateKey);
const scopes = (length) => Array.from({ length }, (_, i) => `read:thing-${i}`);
/** A claim that brings the token to this length. */
const pad = (bytes) => {
  const plain = mint({ pad: '' }).length;
  return { pad: 'x'.repeat(Math.max(0, Math.floor(((bytes - plain) * 3) / 4))) };
};
let shortest = 0;
/** Returns the smallest claims, different each time. */
const short = () => ({
  ...{ azp: undefined, permissions: undefined, scope: 'openid', aud: audience, jti: undefined },
  sub: (shortest++).toString(36),
});

/** @typedef {{ sizes: number[], claims?: (size: number) => object, keys?: (size: number) => object[], policy?: (size: number) => object }} Table */

/**
 * Sizes by table, and the claims, keys and policy of each size.
 *
 * @type {Record<string, Table>}
 */
const tables = {
  'token, KiB': {
    sizes: [0.5, 1, 2, 4, 8],
    // The smallest is as small as RS256 lets it be; the largest as large as is accepted.
    claims: (size) => (size < 1 ? short() : pad(size * 1024 - 8)),
  },
  'keys in the set': { sizes: [1, 10, 100], keys: (size) => Array.from({ length: size - 1 }, otherKey) },
  'scopes in the token': {
    sizes: [1, 10, 100],
    claims: (size) => ({ scope: scopes(size).join(' ') }),
    policy: (size) => ({ scopes: scopes(size).slice(-1) }),
  },
};

const request = (token) => ({
  method: 'GET',
  url: 'https://api.example.com/messages',
  headers: { get: (name) => (name.toLowerCase() === 'authorization' ? `Bearer ${token}` : null) },
});

/**
 * @param {Table} table
 * @param {number} size
 */
function openCase({ claims, keys, policy }, size) {
  const jwks = { keys: [describe(pair.publicKey, 'k'), ...(keys?.(size) ?? [])] };
  const server = createResourceServer({ issuers: [{ issuer, keys: createStaticKeySet(jwks) }], audience });
  const told = policy?.(size) ?? {};
  return {
    size,
    mint: () => mint(claims?.(size) ?? {}),
    judge: (token) => server.judge(request(token), told),
    samples: /** @type {Record<'cold' | 'warm' | 'bytes', number[]>} */ ({ cold: [], warm: [], bytes: [] }),
  };
}

/** µs of one call, the median of the rounds that this is one of. */
async function time(calls, act) {
  const startedAt = process.hrtime.bigint();
  for (let i = 0; i < calls; i++) await act(i);
  return Number(process.hrtime.bigint() - startedAt) / calls / 1000;
}

/** Returns medians by table and size: bytes of the token, µs of a new token, µs of a cached token. */
export async function measureGrowth() {
  const opened = Object.entries(tables).map(([name, table]) => ({
    name,
    rows: table.sizes.map((size) => openCase(table, size)),
  }));
  const all = opened.flatMap(({ rows }) => rows);
  for (let round = 0; round <= rounds; round++) {
    for (const { mint: make, judge, samples } of all) {
      const tokens = Array.from({ length: count }, make);
      if (new Set(tokens).size < count) throw new Error('Tokens that are to be new are alike.');
      const cold = await time(count, (i) => judge(tokens[i]));
      for (const token of tokens.slice(0, 10)) await judge(token); // kept when it comes for the second time
      const warm = await time(count * repeats, (i) => judge(tokens[i % 10]));
      if (round === 0) continue; // the first is the warm-up
      samples.cold.push(cold);
      samples.warm.push(warm);
      samples.bytes.push(tokens[0].length);
    }
  }
  return Object.fromEntries(
    opened.map(({ name, rows }) => [
      name,
      rows.map(({ size, samples: { bytes, cold, warm } }) => ({
        size,
        bytes: median(bytes),
        cold: median(cold),
        warm: median(warm),
      })),
    ]),
  );
}
