import * as redis from '@redis/client';
import { describe, expect, it } from 'vitest';
import { keepLink } from '../../../src/core/dpop/kept-link.ts';
import { linkTo, type RedisLink, useClient } from '../../../src/core/dpop/redis-link.ts';

/** A client that notes what it is told to connect with. */
function createNoting() {
  const noted: object[] = [];
  const listeners = new Map<string, (cause: unknown) => void>();
  const note = (options: object) => {
    noted.push(options);
    return { on: (event: string, listener: (cause: unknown) => void) => void listeners.set(event, listener) };
  };
  const creators = { createClient: note, createSentinel: note, createCluster: note };
  return { noted, listeners, client: { ...redis, ...creators } as unknown as typeof redis };
}

import type { RedisClientLike } from '../../../src/core/dpop/redis-script.ts';

describe.each([
  ['sentinel', '/gate', ({ nodeClientOptions }) => [nodeClientOptions]],
  ['cluster', '', ({ defaults }) => [defaults]],
] satisfies [string, string, (options: Record<string, unknown>) => unknown[]][])('redis+%s', (kind, path, read) => {
  it.each([
    ['redis', 'user:pass@', { username: 'user', password: 'pass' }],
    ['redis', ':pass@', { password: 'pass' }],
    ['redis', 'user@', { username: 'user' }],
    ['rediss', '', { tls: true }],
    ['rediss', 'user:pass@', { username: 'user', password: 'pass', tls: true }],
    ['redis', '', {}],
  ])('%s with %j: every connection has the credentials and TLS of the URL', (scheme, credentials, expected) => {
    const { noted, client } = createNoting();
    linkTo(client, `${scheme}+${kind}://${credentials}one:7000${path}`);
    const connections = noted.flatMap((options) => read(options as Record<string, unknown>)); // looked at below
    expect(connections.length).toBeGreaterThan(0);
    for (const connection of connections) {
      const { username, password, socket } = connection as Record<string, unknown>;
      const { tls } = socket as { readonly tls?: boolean };
      const seen = { ...(username !== undefined && { username }), ...(password !== undefined && { password }) };
      expect({ ...seen, ...(tls !== undefined && { tls }) }).toEqual(expected);
    }
  });
});

it.each([
  ['their own credentials', { username: 'watcher', password: 'other' }, { username: 'watcher', password: 'other' }],
  ['no credentials', undefined, { username: undefined, password: undefined }],
])('sentinels: %s → sent to them instead of the credentials of the URL', (_, sentinel, expected) => {
  const { noted, client } = createNoting();
  linkTo(client, 'redis+sentinel://user:pass@one:7000/gate', sentinel === undefined ? {} : { sentinel });
  const [{ sentinelClientOptions }] = noted as [{ readonly sentinelClientOptions: Readonly<Record<string, unknown>> }];
  const { username, password } = sentinelClientOptions;
  expect({ username, password }).toEqual(expected);
});

it('an error of a sentinel that is a string → an Error with its text', () => {
  const { listeners, client } = createNoting();
  const causes: unknown[] = [];
  const listener = { onError: (cause: unknown) => causes.push(cause), onAnswer: () => undefined };
  linkTo(client, 'redis+sentinel://one:7000/gate').open(listener);
  listeners.get('error')?.('sentinel error: ReplyError: WRONGPASS');
  expect(causes).toEqual([new Error('WRONGPASS')]);
});

describe('tls', () => {
  it('a rediss URL → the options of its connection', () => {
    const { noted, client } = createNoting();
    linkTo(client, 'rediss://one:7000', { tls: { ca: 'authority' } });
    expect(noted).toMatchObject([{ socket: { tls: true, ca: 'authority' } }]);
  });

  it('a redis URL → TypeError', () =>
    expect(() => linkTo(redis, 'redis://one:7000', { tls: {} })).toThrow(/^tls: needs a URL that begins with rediss$/));
});

it('a client without duplicate() → subscribing is a TypeError', async () => {
  const client = { evalSha: async () => null, eval: async () => null } as RedisClientLike;
  const link = useClient(client).open({ onError: () => undefined, onAnswer: () => undefined });
  await expect(link.subscribe(['a'], () => undefined)).rejects.toThrow('The client has no duplicate()');
});

it('a link that is closed while it is prepared → not used', async () => {
  let finish = (): void => undefined;
  const prepared = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const events: string[] = [];
  const link = { connect: async () => undefined, destroy: () => events.push('destroyed') } as unknown as RedisLink;
  const kept = keepLink(
    { isCluster: false, open: () => link },
    { prepare: () => prepared, onReady: () => events.push('ready'), onConnection: (state) => events.push(state) },
  );
  kept.connect();
  kept.close();
  finish();
  await prepared;
  expect([kept.ready(), events]).toEqual([undefined, ['destroyed']]);
});
