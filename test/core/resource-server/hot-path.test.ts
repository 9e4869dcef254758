import { createHash, hash, verify } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { readNodeRequest } from '../../../src/adapters/node-request.ts';
import { AccessError } from '../../../src/core/failures.ts';
import type { IssuerFinder } from '../../../src/core/resource-server/issuers/issuer-finder.ts';
import type { IssuerList } from '../../../src/core/resource-server/issuers/trusted-issuer.ts';
import { type Access, createResourceServer } from '../../../src/core/resource-server/resource-server.ts';
import type { TokenCacheOptions } from '../../../src/core/token/token-cache.ts';
import { createTestIssuer } from '../../../src/testing/index.ts';

// Counts what is dear. Times would depend on the machine; these do not.
vi.mock('node:crypto', async (load) => {
  const actual = await load<typeof import('node:crypto')>();
  return { ...actual, verify: vi.fn(actual.verify), hash: vi.fn(actual.hash), createHash: vi.fn(actual.createHash) };
});
const parse = vi.spyOn(JSON, 'parse');

const issuer = createTestIssuer();
const client = issuer.dpopClient();
const url = 'http://api.example.test/messages';
const policy = { scopes: ['read:messages'] };

/** What one call has cost. */
function count() {
  const of = (spied: unknown): number => vi.mocked(spied as typeof hash).mock.calls.length;
  return { signatures: of(verify), hashes: of(hash) + of(createHash), parsed: parse.mock.calls.length };
}

function createCase(tokenCache: TokenCacheOptions = {}, issuers: IssuerList | IssuerFinder = [issuer]) {
  const server = createResourceServer({ issuers, audience: issuer.audience, tokenCache });
  const call = async (headers: Readonly<Record<string, string>>): Promise<Access> => {
    const rawHeaders = ['Host', 'api.example.test', ...Object.entries(headers).flat()];
    const incoming = { method: 'GET', url: '/messages', rawHeaders, socket: {} } as IncomingMessage; // all that is read
    const judged = await server.judge(readNodeRequest(incoming), policy);
    if (judged instanceof AccessError) throw judged;
    return judged;
  };
  const counted = async (headers: Readonly<Record<string, string>>) => {
    vi.clearAllMocks();
    await call(headers);
    return count();
  };
  return { server, call, counted };
}

const scope = 'openid read:messages';
const bearer = () => ({ ...issuer.headers({ scope, jti: crypto.randomUUID() }) });
const prove = (token: string) => ({
  authorization: `DPoP ${token}`,
  dpop: client.proof({ method: 'GET', url, token }),
});

beforeEach(async () => {
  await createCase().call(bearer());
});

describe('cost of a request', () => {
  it('token that was seen before → no hash, no signature, nothing parsed', async () => {
    const { counted } = createCase();
    const headers = bearer();
    await counted(headers);
    // Kept when it comes for the second time.
    expect(await counted(headers)).toEqual({ signatures: 1, hashes: 0, parsed: 1 });
    expect(await counted(headers)).toEqual({ signatures: 0, hashes: 0, parsed: 0 });
  });

  it.each<[string, IssuerFinder['find']]>([
    ['object', () => issuer],
    ['new object', ({ length }) => (length > 0 ? { issuer: issuer.issuer, keys: issuer.keys } : undefined)],
  ])('the same, its issuer found by name as %s → no hash, no signature, nothing parsed', async (_name, find) => {
    const { counted } = createCase({}, { find });
    const headers = bearer();
    await counted(headers);
    // Its claims are read once for the name, and once to be verified.
    expect(await counted(headers)).toEqual({ signatures: 1, hashes: 0, parsed: 2 });
    expect(await counted(headers)).toEqual({ signatures: 0, hashes: 0, parsed: 0 });
  });

  it('new token → one signature, no hash, and its claims parsed: the header was seen before', async () => {
    const { counted } = createCase();
    expect(await counted(bearer())).toEqual({ signatures: 1, hashes: 0, parsed: 2 });
    expect(await counted(bearer())).toEqual({ signatures: 1, hashes: 0, parsed: 1 });
  });

  it('token that was seen before, with a new proof → the signature and the claims of the proof', async () => {
    const { counted } = createCase();
    const token = client.token({ scope });
    const proofs = [prove(token), prove(token), prove(token)] as const;
    // The token and its header, the proof and its header, the thumbprint of its key; the replay store hashes.
    expect(await counted(proofs[0])).toEqual({ signatures: 2, hashes: 3, parsed: 4 });
    expect(await counted(proofs[1])).toEqual({ signatures: 2, hashes: 2, parsed: 2 });
    expect(await counted(proofs[2])).toEqual({ signatures: 1, hashes: 2, parsed: 1 });
  });

  it.each(['malformed_encoding', 'expired', 'invalid_audience', 'invalid_signature'] as const)(
    '%s → no more than a new token',
    async (flaw) => {
      const { call } = createCase();
      const authorization = `Bearer ${issuer.flawed(flaw)}`;
      vi.clearAllMocks();
      await expect(call({ authorization })).rejects.toBeInstanceOf(AccessError);
      const { signatures, hashes, parsed } = count();
      expect(signatures).toBeLessThanOrEqual(1);
      expect(hashes).toBe(0);
      expect(parsed).toBeLessThanOrEqual(2);
    },
  );
});

describe('a flood of distinct tokens', () => {
  it('of bad ones: keeps none, and evicts no good one', async () => {
    const { server, call, counted } = createCase();
    const good = Array.from({ length: 20 }, bearer);
    // Twice in a row: another token may take the place of one that was seen once.
    for (const headers of good) for (let i = 0; i < 2; i++) await call(headers);
    const text = issuer.token({ scope });
    const input = text.slice(0, text.lastIndexOf('.'));
    for (let i = 0; i < 2000; i++) {
      // 342 characters: the length of a signature by a key of 2048 bits, and canonical.
      const authorization = `Bearer ${input}.${String(i).padStart(341, '_')}A`;
      await expect(call({ authorization })).rejects.toBeInstanceOf(AccessError);
    }
    expect(server.tokenCacheStatus()).toMatchObject({ entries: good.length });
    for (const headers of good) expect(await counted(headers)).toEqual({ signatures: 0, hashes: 0, parsed: 0 });
  });

  it('of good ones that each come once: no more', async () => {
    const { server, call, counted } = createCase({ maxEntries: 20 });
    const good = Array.from({ length: 20 }, bearer);
    // Twice in a row: another token may take the place of one that was seen once.
    for (const headers of good) for (let i = 0; i < 2; i++) await call(headers);
    for (let i = 0; i < 200; i++) await call(bearer());
    expect(server.tokenCacheStatus()).toMatchObject({ entries: good.length });
    for (const headers of good) expect(await counted(headers)).toEqual({ signatures: 0, hashes: 0, parsed: 0 });
  });
});

it('shared objects of requests: claims and scopes cannot be changed by a handler', async () => {
  const { call } = createCase();
  const headers = { ...issuer.headers({ scope, permissions: ['a'], nested: { list: [{}] } }) };
  const { claims, scopes } = await call(headers);
  const change = (target: object) => () => Object.assign(target, { changed: true });
  expect(change(claims)).toThrow(TypeError);
  expect(() => (claims['permissions'] as string[]).push('admin')).toThrow(TypeError);
  expect(change((claims['nested'] as { list: object[] }).list[0] ?? {})).toThrow(TypeError);
  const set = scopes as Set<string>;
  for (const act of [() => set.add('admin'), () => set.delete('openid'), () => set.clear()]) {
    expect(act).toThrow(TypeError);
  }
  expect([...(await call(headers)).scopes]).toEqual(['openid', 'read:messages']);
});
