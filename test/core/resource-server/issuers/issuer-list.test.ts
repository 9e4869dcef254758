import { afterEach, describe, expect, it, vi } from 'vitest';
import type { AnyServerOptions, ResourceServerEvent } from '../../../../src/core/resource-server/options.ts';
import { createResourceServer, type ResourceServer } from '../../../../src/core/resource-server/resource-server.ts';
import { createTenants } from '../../../support/tenants.ts';
import { bearer, judge } from '../../../testing/judge.ts';

const { nameOf, call, fetch, fetched, down, kit } = createTenants();

const opened: ResourceServer[] = [];
function open(
  options: Omit<AnyServerOptions<'required'>, 'issuers'> & Pick<Required<AnyServerOptions>, 'issuers'>,
): ResourceServer {
  const server = createResourceServer({ audience: kit.audience, algorithms: ['EdDSA'], fetch, ...options });
  opened.push(server);
  return server;
}
afterEach(() => {
  for (const server of opened.splice(0)) server.close();
  fetched.length = 0;
});

describe('issuers as a function', () => {
  it('list of 1,500 names → each token is accepted, and only used issuers are fetched', async () => {
    const list = Array.from({ length: 1500 }, (_, index) => nameOf(index));
    const events: ResourceServerEvent[] = [];
    const server = open({ issuers: () => list, onEvent: (event) => events.push(event) });
    for (const index of [0, 1, 1499, 0, 700]) expect(await judge(server, call(index))).toBe('accepted');
    expect(fetched).toHaveLength(2 * 4);
  });

  it('1,500 tenants in three rounds → the keys of each are fetched once', async () => {
    const server = open({ issuers: ({ headers }) => [nameOf(Number(headers.get('x-tenant')))] });
    for (let round = 0; round < 3; round++) {
      for (let index = 0; index < 1500; index++) {
        const { headers } = call(index);
        expect(await judge(server, { headers: { ...headers, 'x-tenant': String(index) } })).toBe('accepted');
      }
    }
    expect(fetched).toHaveLength(2 * 1500);
  });

  it('name of an issuer → the second token of it does not renew its rules: the third request is a cache hit', async () => {
    const server = open({ issuers: () => [nameOf(0)] });
    const token = call(0);
    for (let count = 0; count < 4; count++) expect(await judge(server, token)).toBe('accepted');
    expect(server.tokenCacheStatus()).toMatchObject({ hits: 2 });
  });

  it('maxOpenIssuers 1, 30 tenants at once → each token is accepted', async () => {
    const server = open({ issuers: ({ headers }) => [nameOf(Number(headers.get('x-tenant')))], maxOpenIssuers: 1 });
    const calls = Array.from({ length: 60 }, (_, index) => {
      const tenant = index % 30;
      return judge(server, { headers: { ...call(tenant).headers, 'x-tenant': String(tenant) } });
    });
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['accepted']));
    expect(fetched).toHaveLength(2 * 30);
  });

  it('provider that is down when its key set is opened again → its tokens are accepted', async () => {
    const server = open({ issuers: ({ headers }) => [nameOf(Number(headers.get('x-tenant')))], maxOpenIssuers: 1 });
    const send = (tenant: number) =>
      judge(server, { headers: { ...call(tenant).headers, 'x-tenant': String(tenant) } });
    expect(await send(1)).toBe('accepted');
    expect(await send(2)).toBe('accepted');
    down.add('tenant-1.example');
    expect(await send(1)).toBe('accepted');
    down.clear();
  });

  it.each([64, 65])('list of %i whose entries change in place → noticed within a second', async (length) => {
    const list = Array.from({ length }, (_, index) => ({ issuer: nameOf(index), keys: kit.keys }));
    const server = open({ issuers: () => list });
    const clock = vi.spyOn(performance, 'now').mockReturnValue(1000);
    const token = call(7);
    for (let count = 0; count < 3; count++) expect(await judge(server, token)).toBe('accepted');
    list[7] = { issuer: nameOf(1000), keys: kit.keys };
    expect(await judge(server, token)).toBe(length > 64 ? 'accepted' : 'invalid_issuer');
    clock.mockReturnValue(2000);
    expect(await judge(server, token)).toBe('invalid_issuer');
    expect(await judge(server, call(1000))).toBe('accepted');
    list.pop();
    expect(await judge(server, call(length - 1))).toBe('invalid_issuer');
    clock.mockRestore();
  });

  it.each([
    [{ issuer: 'https://idp.example', jwksUri: 'http://idp.example/keys' }, /^jwksUri: write an https URL/],
    [{ issuer: 'http://idp.example/' }, /^issuer: it is not a plain https URL/],
  ])('entry %j that cannot work → TypeError at each request', async (entry, message) => {
    const server = open({ issuers: () => [nameOf(0), entry] });
    await expect(judge(server, call(0))).rejects.toThrow(message);
    await expect(judge(server, call(0))).rejects.toThrow(TypeError);
  });

  it('tokens that are not valid, with names that are trusted → take no key set from tenants with valid tokens', async () => {
    const list = Array.from({ length: 400 }, (_, index) => nameOf(index));
    const server = open({ issuers: () => list, maxOpenIssuers: 20 });
    const tokens = Array.from({ length: 10 }, (_, index) => call(index));
    for (const token of [...tokens, ...tokens]) expect(await judge(server, token)).toBe('accepted');
    for (let index = 10; index < 400; index++) {
      expect(await judge(server, bearer(kit.flawed('invalid_signature', { iss: nameOf(index) })))).toBe(
        'invalid_signature',
      );
    }
    down.add('all');
    const before = fetched.length;
    for (const token of tokens) expect(await judge(server, token)).toBe('accepted');
    expect(server.tokenCacheStatus()).toMatchObject({ hits: 10 });
    expect(fetched).toHaveLength(before);
    down.clear();
  });
});
