import { generateKeyPairSync } from 'node:crypto';
import type { Connection, ResourceRequest } from '../../src/core/http/request.ts';
import { signCompact } from '../../src/core/jose/sign.ts';
import type { KeySet } from '../../src/core/keys/key-set.ts';
import { hashToken, makeProofKey, mintProof, thumbprintOf } from '../support/proofs.ts';

export type Choices<T> = readonly [T, ...T[]];
export type Pick = <T>(choices: Choices<T>) => T;

/** Creates random choices by a seed (mulberry32), so that a difference can be repeated. */
export function createPick(seed: number): Pick {
  let state = seed;
  return (choices) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return choices[((mixed ^ (mixed >>> 14)) >>> 0) % choices.length] ?? choices[0];
  };
}

/** One of a list that is never empty. */
const oneOf = <T>(pick: Pick, all: Iterable<T>): T => pick([...all] as unknown as Choices<T>);
/** True with a chance of one in this number. */
const once = (pick: Pick, times: number): boolean => oneOf(pick, Array(times).keys()) === 0;

export const issuer = 'https://idp.example/';
export const audience = 'orders';

/** A call, and what else happened since the one before. */
export interface RandomCall {
  readonly request: ResourceRequest;
  readonly connection: Connection;
  readonly revoke?: { readonly issuer: string; readonly before: number } & (
    | { readonly sub: string }
    | { readonly sid: string }
  );
}

const proofKeys = [makeProofKey(), makeProofKey()] as const;
const claimSets: Choices<Readonly<Record<string, unknown>>> = [
  { sub: 'ann', scope: 'read write', tenant: 'acme' },
  { sub: 'bob', scope: 'admin', tenant: 'other', sid: 's1', permissions: ['orders:write'] },
  { sub: 'ann', scope: 'read', tenant: 'acme', acr: 'gold', sid: 's2' },
  { sub: 'bound', scope: 'read write', cnf: { jkt: thumbprintOf(proofKeys[0].jwk) } },
  { sub: 'bound', scope: 'admin', tenant: 2 ** 53, cnf: { jkt: thumbprintOf(proofKeys[1].jwk) } },
  { scope: 'read', client_id: 'machine', aud: ['else', audience] },
  { sub: 'eve', scope: 'read', aud: 'else' },
  { sub: 'é"', scope: '', iss: 'https://other.example/' },
];
const targets: Choices<string> = [
  ...(['/', '/orders', '/orders/', '/orders/7', '/orders/8', '/orders/new', '/t/acme', '/t/%61cme'] as const),
  ...['/t/other', '/open', '/open/x?y=1', '/none/x', '/orders/..', '/orders/a%2fb', '//', '/orders/%37', '/watched'],
];
const hosts: Choices<string> = [
  'api.example',
  'API.example:443',
  'acme.example',
  'x.y.example',
  'other.test',
  'bad host',
];

/** A world of tokens, keys that are replaced, and a clock that runs, by one seed. */
export function createRandomWorld(pick: Pick, start = 1_800_000_000) {
  let time = start;
  let generation = 0;
  const pairs = [0, 1, 2].map(() => generateKeyPairSync('ed25519'));
  /** Key pairs by published name: a name can change its key. */
  const published = new Map([
    ['a', 0],
    ['b', 1],
  ]);
  const keys: KeySet = {
    find: (kid, alg) => (alg === 'EdDSA' ? pairs[published.get(kid) ?? -1]?.publicKey : undefined),
    has: (kid) => published.has(kid),
    usable: () => published.size > 0,
    get generation() {
      return generation;
    },
    refetch: () => undefined,
  };

  const mint = (): string => {
    const [kid, pair] = once(pick, 10) ? ['c', 2] : oneOf(pick, published.size === 0 ? [['a', 0] as const] : published);
    const iat = Math.floor(time) - oneOf(pick, [0, 1, 30]);
    const claims = {
      iss: issuer,
      aud: audience,
      iat,
      auth_time: iat,
      exp: iat + oneOf(pick, [40, 600, 3600]),
      ...(once(pick, 4) ? pick(claimSets) : oneOf(pick, claimSets.slice(0, 5))),
    };
    const { privateKey } = pairs[Number(pair)] as (typeof pairs)[number]; // one of the three
    return signCompact({ alg: 'EdDSA', kid, typ: 'at+jwt' }, claims, { alg: 'EdDSA', privateKey });
  };
  const tokens = Array.from({ length: 16 }, mint);
  const opaque = new Map(
    claimSets.map((claims, index) => {
      const answer = {
        active: index !== 1,
        iss: issuer,
        aud: audience,
        iat: start,
        exp: start + 1000 * (index + 1),
        ...claims,
      };
      return [`opaque-${index}`, answer];
    }),
  );

  /** A token, or what a cache could confuse with it: other parts under the same signature, a changed or shorter signature. */
  const disturb = (token: string): string => {
    if (!once(pick, 10)) return token;
    const [header, claims, signature = ''] = token.split('.');
    const [otherHeader, otherClaims, otherSignature] = oneOf(pick, tokens).split('.');
    return pick([
      `${header}.${otherClaims}.${signature}`,
      `${otherHeader}.${claims}.${signature}`,
      `${header}.${claims}.${otherSignature}`,
      `${header}.${claims}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`,
      token.slice(0, -1),
    ]);
  };

  let lastProof = 'none';
  const prove = (token: string, method: string, url: string): string => {
    if (once(pick, 4)) return lastProof;
    const ath = once(pick, 12) ? 'another' : hashToken(token);
    const jti = `${Math.floor(time)}`;
    const proof = { jti, htm: method, htu: url, iat: Math.floor(time), ath };
    // Most are by the key that the token is bound to.
    const isSecond = Buffer.from(token.split('.')[1] ?? '', 'base64url').includes(thumbprintOf(proofKeys[1].jwk));
    lastProof = mintProof(proof, { key: proofKeys[isSecond !== once(pick, 12) ? 1 : 0] });
    return lastProof;
  };

  /** Lets time pass, and sometimes replaces a token or a key, or ends a session. */
  const pass = (): RandomCall['revoke'] => {
    if (once(pick, 4)) time += oneOf(pick, [0.5, 1, 7]);
    if (once(pick, 6)) tokens[oneOf(pick, tokens.keys())] = mint();
    if (once(pick, 250)) {
      const [kid, pair] = [oneOf(pick, ['a', 'b']), oneOf(pick, [0, 1, 2, undefined])];
      if (pair === undefined) published.delete(kid);
      else published.set(kid, pair);
      generation++;
    }
    if (!once(pick, 200)) return undefined;
    const before = Math.floor(time) - 40;
    return once(pick, 2) ? { issuer, before, sub: oneOf(pick, ['ann', 'bound']) } : { issuer, before, sid: 's3' };
  };

  const next = (): RandomCall => {
    const revoke = pass();
    const token = once(pick, 6) ? oneOf(pick, [...opaque.keys(), 'unknown']) : disturb(oneOf(pick, tokens));
    const method = oneOf(pick, ['GET', 'GET', 'GET', 'POST', 'HEAD', 'OPTIONS']);
    const [host, target] = [once(pick, 2) ? hosts[0] : pick(hosts), pick(targets)];
    const url = `https://${host}${target}`;
    const headers = new Map([['host', host]]);
    const isBound = Buffer.from(token.split('.')[1] ?? '', 'base64url').includes('jkt');
    const usual = isBound ? 'DPoP' : 'Bearer';
    const scheme = once(pick, 8)
      ? oneOf(pick, ['Bearer', 'DPoP', 'Basic', ''])
      : oneOf(pick, [usual, usual.toLowerCase()]);
    if (scheme !== '') headers.set('authorization', `${scheme} ${token}`);
    if (/dpop/i.test(scheme) && !once(pick, 12)) headers.set('dpop', prove(token, method, url.replace(/\?.*/, '')));
    if (once(pick, 25)) headers.set('x-forwarded-host', oneOf(pick, ['api.example', 'acme.example', 'a, b']));
    const remoteAddress = oneOf(pick, ['10.0.0.1', '10.200.3.4', '192.0.2.1', '::ffff:10.0.0.1']);
    return {
      request: { method, url, target, headers: { get: (name) => headers.get(name.toLowerCase()) ?? null } },
      connection: { encrypted: true, remoteAddress },
      ...(revoke !== undefined && { revoke }),
    };
  };
  return { keys, next, now: () => time, introspect: (token: string) => opaque.get(token) ?? { active: false } };
}
