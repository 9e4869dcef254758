import { describe, expect, it } from 'vitest';
import { parseRedisUrl } from '../../../src/core/dpop/redis-url.ts';

const open = { tls: false, username: undefined, password: undefined };

describe('the URL of a Redis', () => {
  it.each([
    ['redis://localhost', { kind: 'single', url: 'redis://localhost' }],
    ['rediss://user:pass@host:1/2', { kind: 'single', url: 'rediss://user:pass@host:1/2' }],
    ['redis+sentinel://one/gate', { kind: 'sentinel', ...open, nodes: [{ host: 'one', port: 26_379 }], name: 'gate' }],
    [
      'rediss+sentinel://user:p%40ss@one:1,[::1]:2,10.0.0.1/my%20gate',
      {
        kind: 'sentinel',
        tls: true,
        username: 'user',
        password: 'p@ss',
        nodes: [
          { host: 'one', port: 1 },
          { host: '::1', port: 2 },
          { host: '10.0.0.1', port: 26_379 },
        ],
        name: 'my gate',
      },
    ],
    [
      'redis+cluster://:secret@one,two:7000',
      {
        kind: 'cluster',
        tls: false,
        username: undefined,
        password: 'secret',
        nodes: [
          { host: 'one', port: 6379 },
          { host: 'two', port: 7000 },
        ],
      },
    ],
    ['redis+cluster://one/', { kind: 'cluster', ...open, nodes: [{ host: 'one', port: 6379 }] }],
    ['redis+cluster://user@one', { kind: 'cluster', ...open, username: 'user', nodes: [{ host: 'one', port: 6379 }] }],
  ])('%s', (url, target) => expect(parseRedisUrl(url)).toEqual(target));

  it.each(['', 'memory', 'http://one', 'redis+sentinel://one', 'redis+cluster://', 'redis+pool://one'])(
    '%j → TypeError',
    (url) => expect(() => parseRedisUrl(url)).toThrow(TypeError),
  );
});
