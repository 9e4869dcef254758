import * as redis from '@redis/client';
import { describe, expect, it } from 'vitest';
import { linkTo } from '../../src/dpop/redis-link.ts';

/** A client that notes what it is told to connect with. */
function createNoting() {
  const noted: object[] = [];
  const note = (options: object) => {
    noted.push(options);
    return { on: () => undefined };
  };
  return { noted, client: { ...redis, createSentinel: note, createCluster: note } as unknown as typeof redis };
}

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

describe('sentinels', () => {
  it.each([
    ['their own credentials', { username: 'watcher', password: 'other' }, { username: 'watcher', password: 'other' }],
    ['no credentials', undefined, { username: undefined, password: undefined }],
  ])('%s → sent to them instead of the credentials of the URL', (_, sentinel, expected) => {
    const { noted, client } = createNoting();
    linkTo(client, 'redis+sentinel://user:pass@one:7000/gate', sentinel === undefined ? {} : { sentinel });
    const [{ sentinelClientOptions }] = noted as [
      { readonly sentinelClientOptions: Readonly<Record<string, unknown>> },
    ];
    const { username, password } = sentinelClientOptions;
    expect({ username, password }).toEqual(expected);
  });
});
