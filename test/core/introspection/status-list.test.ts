import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { deflateSync } from 'node:zlib';
import { StatusList } from '@sd-jwt/jwt-status-list';
import { afterEach, describe, expect, it } from 'vitest';
import type { AccessError } from '../../../src/core/failures.ts';
import type { KeySet } from '../../../src/core/keys/key-set.ts';
import type { ResourceServerOptions } from '../../../src/core/resource-server/options.ts';
import { createResourceServer } from '../../../src/core/resource-server/resource-server.ts';
import { createTestIssuer } from '../../../src/testing/index.ts';
import { until } from '../../support/redis-store.ts';
import { createTestCertificates } from '../../support/tls.ts';

const issuer = createTestIssuer();
const stranger = createTestIssuer();
const now = (): number => Math.floor(Date.now() / 1000);
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

type Claims = Readonly<Record<string, unknown>>;
type Bits = 1 | 2 | 4 | 8;
const pack = (statuses: number[], bits: Bits): string => new StatusList(statuses, bits).compressStatusList();

/** Serves status lists by path, over TLS, and a resource server that trusts them. */
async function open(issuers: ResourceServerOptions['issuers'] = [issuer]) {
  const certificates = await createTestCertificates();
  const lists = new Map<string, () => string>();
  const requests: string[] = [];
  const respond = { status: 200, location: '' };
  const server = createServer({ cert: certificates.cert, key: certificates.key }, (request, response) => {
    requests.push(String(request.url));
    const list = lists.get(String(request.url));
    const headers = {
      'content-type': 'application/statuslist+jwt',
      ...(respond.location && { location: respond.location }),
    };
    response.writeHead(list === undefined ? 404 : respond.status, headers).end(list?.());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `https://localhost:${(server.address() as AddressInfo).port}`;
  const resourceServer = createResourceServer({
    ...{ issuers, audience: issuer.audience, ca: certificates.ca },
    statusLists: [`${origin}/status/`],
  });
  closers.push(() => {
    resourceServer.close();
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  const uri = `${origin}/status/1`;
  const own = { aud: undefined, client_id: undefined, jti: undefined, exp: undefined };
  const publish = (
    statuses: number[],
    bits: Bits = 1,
    claims: Claims = {},
    header: Claims = {},
    by = issuer,
    at = '/status/1',
  ) =>
    lists.set(at, () =>
      by.token(
        { ...own, sub: `${origin}${at}`, ttl: 60, status_list: { bits, lst: pack(statuses, bits) }, ...claims },
        { typ: 'statuslist+jwt', ...header },
      ),
    );
  const authorize = async (token: string): Promise<string> => {
    const request = new Request('https://api.test/', { headers: { authorization: `Bearer ${token}` } });
    return resourceServer.authorize(request).then(
      () => 'admitted',
      (error: AccessError) => error.reason,
    );
  };
  const decide = (status: unknown): Promise<string> => authorize(issuer.token({ status }));
  const at = (idx: unknown, listed: unknown = uri) => decide({ status_list: { idx, uri: listed } });
  return { origin, uri, lists, requests, respond, publish, authorize, decide, at };
}

describe('vectors of the draft', () => {
  it.each([
    [1, [1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 1], 'eNrbuRgAAhcBXQ'],
    [2, [1, 2, 0, 3, 0, 1, 0, 1, 1, 2, 3, 3], 'eNo76fITAAPfAgc'],
  ] as const)('%i bits', async (bits, statuses, lst) => {
    const { at, publish } = await open();
    publish([], bits, { status_list: { bits, lst } });
    const seen = await Promise.all(statuses.map((_, idx) => at(idx)));
    expect(seen).toEqual(statuses.map((status) => (status === 0 ? 'admitted' : 'revoked_token')));
  });
});

it.each([1, 2, 4, 8] as const)('%i bits, lists of another library → the same statuses', async (bits) => {
  const { at, publish } = await open();
  const statuses = Array.from({ length: 64 }, (_, i) => (i * 7 + (i >> 2)) % 2 ** bits);
  publish(statuses, bits);
  const seen: string[] = [];
  for (const idx of statuses.keys()) seen.push(await at(idx));
  expect(seen).toEqual(statuses.map((status) => (status === 0 ? 'admitted' : 'revoked_token')));
});

it('idx outside the list → revoked_token', async () => {
  const { at, publish } = await open();
  publish([0, 0, 0, 0, 0, 0, 0, 0]);
  expect([await at(7), await at(8), await at(2 ** 50), await at(Number.MAX_SAFE_INTEGER)]).toEqual([
    'admitted',
    ...Array(3).fill('revoked_token'),
  ]);
});

it.each([
  ['no status', undefined],
  ['another mechanism', { other: {} }],
  ['a status that is a string', 'active'],
])('%s → ignored', async (_title, status) => {
  const { decide, requests } = await open();
  expect(await decide(status)).toBe('admitted');
  expect(requests).toEqual([]);
});

it.each([
  ['a status list that is a string', { status_list: 'x' }],
  ['null', { status_list: null }],
  ['no idx', { status_list: { uri: 'https://localhost/' } }],
  ['a negative idx', { status_list: { idx: -1, uri: 'https://localhost/' } }],
  ['a fraction', { status_list: { idx: 1.5, uri: 'https://localhost/' } }],
  ['a huge idx', { status_list: { idx: 2 ** 60, uri: 'https://localhost/' } }],
  ['idx as a string', { status_list: { idx: '1', uri: 'https://localhost/' } }],
  ['no uri', { status_list: { idx: 1 } }],
  ['uri as a number', { status_list: { idx: 1, uri: 7 } }],
])('%s → malformed_status', async (_title, status) => {
  expect(await (await open()).decide(status)).toBe('malformed_status');
});

it('a uri that is not below a prefix, or is not normalised → status_list_not_allowed, never fetched', async () => {
  const { origin, at, requests } = await open();
  const uris = [
    ...['https://other.example/status/1', `${origin}/other/1`, `${origin}/status/../other`, `${origin}/status`],
    ...[
      `${origin}/status/%2e%2e/other`,
      `${origin.replace('localhost', 'LOCALHOST')}/status/1`,
      `${origin}/status/a b`,
    ],
    ...[origin.replace('https', 'http'), `${origin.replace('localhost', 'user@localhost')}/status/1`, 'nonsense'],
  ];
  expect(await Promise.all(uris.map((uri) => at(0, uri)))).toEqual(uris.map(() => 'status_list_not_allowed'));
  expect(requests).toEqual([]);
});

describe('lists that cannot be used → revocation_unknown', () => {
  const bomb = deflateSync(Buffer.alloc(9 * 1024 * 1024)).toString('base64url');
  it.each<[string, (server: Awaited<ReturnType<typeof open>>) => void]>([
    ['absent', () => undefined],
    ['signed by another issuer', ({ publish }) => publish([0], 1, {}, {}, stranger)],
    ['about another issuer', ({ publish }) => publish([0], 1, { iss: 'https://other.example/' })],
    ['typ JWT', ({ publish }) => publish([0], 1, {}, { typ: 'JWT' })],
    ['another sub', ({ publish }) => publish([0], 1, { sub: 'https://other.example/' })],
    ['expired', ({ publish }) => publish([0], 1, { exp: now() - 1 })],
    ['without iat', ({ publish }) => publish([0], 1, { iat: undefined })],
    ['3 bits', ({ publish }) => publish([0], 1, { status_list: { bits: 3, lst: pack([0], 1) } })],
    ['a number in place of bytes', ({ publish }) => publish([0], 1, { status_list: { bits: 1, lst: 1 } })],
    ['not ZLIB', ({ publish }) => publish([0], 1, { status_list: { bits: 1, lst: 'AAAA' } })],
    ['a zip bomb', ({ publish }) => publish([0], 1, { status_list: { bits: 1, lst: bomb } })],
    ['not a JWS', ({ lists }) => lists.set('/status/1', () => 'nonsense')],
    [
      'a redirect',
      ({ publish, respond, uri }) => [publish([0]), Object.assign(respond, { status: 302, location: uri })],
    ],
    ['status 500', ({ publish, respond }) => [publish([0]), Object.assign(respond, { status: 500 })]],
  ])('%s', async (_title, prepare) => {
    const server = await open();
    prepare(server);
    expect(await server.at(0)).toBe('revocation_unknown');
    expect(await server.at(0)).toBe('revocation_unknown');
    // A list that failed is not fetched by each request.
    expect(server.requests.length).toBe(1);
  });
});

it.each([
  ['neither ttl nor exp', { ttl: undefined }],
  ['exp alone', { ttl: undefined, exp: now() + 600 }],
  ['a ttl that is not a number', { ttl: '60' }],
])('%s → the list is kept', async (_title, claims) => {
  const { at, publish, requests } = await open();
  publish([0], 1, claims);
  expect([await at(0), await at(0), requests.length]).toEqual(['admitted', 'admitted', 1]);
});

it.each([
  ['fetched', true, 'admitted'],
  ['not allowed now', false, 'revocation_unknown'],
])('a list that is signed with a new key → the keys are fetched; %s → %s', async (_title, isAllowed, expected) => {
  const rotating = createTestIssuer();
  let newKid: string | undefined;
  const keys: KeySet = {
    ...rotating.keys,
    find: (kid, alg) => (kid === newKid ? undefined : rotating.keys.find(kid, alg)),
    has: (kid) => kid !== newKid && rotating.keys.has(kid),
    async refetch() {
      if (isAllowed) newKid = undefined;
    },
  };
  const { uri, publish, authorize } = await open([{ ...rotating, keys }]);
  const token = rotating.token({ status: { status_list: { idx: 0, uri } } });
  newKid = rotating.rotate();
  publish([0], 1, {}, {}, rotating);
  expect(await authorize(token)).toBe(expected);
});

it('many requests for one list → one fetch', async () => {
  const { at, publish, requests } = await open();
  publish([0, 1]);
  expect(await Promise.all(Array.from({ length: 20 }, () => at(0)))).toEqual(Array(20).fill('admitted'));
  expect(requests.length).toBe(1);
});

it('a list that changes → refreshed in the background by its ttl', async () => {
  const { at, publish, requests } = await open();
  publish([0], 1, { ttl: 1 });
  expect(await at(0)).toBe('admitted');
  publish([1], 1, { ttl: 1 });
  await until(async () => (await at(0)) === 'revoked_token');
  expect(requests.length).toBeGreaterThan(1);
});

it('a list that no request uses → not refreshed again', async () => {
  const { at, publish, requests } = await open();
  publish([0], 1, { ttl: 1 });
  expect(await at(0)).toBe('admitted');
  await until(() => requests.length === 2);
  await sleep(2000);
  expect(requests.length).toBe(2);
});

it('a list that expires and cannot be refreshed → revocation_unknown', async () => {
  const { at, publish, lists } = await open();
  publish([0], 1, { ttl: 1 });
  expect(await at(0)).toBe('admitted');
  lists.clear();
  await until(async () => (await at(0)) === 'revocation_unknown');
});

it('the 65th list → revocation_unknown; the 64 before it still work', async () => {
  const { origin, at, publish } = await open();
  for (let i = 0; i < 65; i++) publish([0], 1, {}, {}, issuer, `/status/${i}`);
  const seen: string[] = [];
  for (let i = 0; i < 65; i++) seen.push(await at(0, `${origin}/status/${i}`));
  expect(seen).toEqual([...Array(64).fill('admitted'), 'revocation_unknown']);
});

it.each([[[]], [['http://idp.example/']], [['https://idp.example/a']], ['https://idp.example/']])(
  'statusLists %j → TypeError',
  (statusLists) => {
    expect(() =>
      createResourceServer({ issuers: [issuer], audience: issuer.audience, statusLists: statusLists as never }),
    ).toThrow('statusLists');
  },
);
