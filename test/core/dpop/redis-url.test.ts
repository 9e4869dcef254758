import { describe, expect, it } from 'vitest';
import { parseRedisUrl } from '../../../src/core/dpop/redis-url.ts';

const open = { tls: false, credentials: {} };
const node = (host: string, port: number) => ({ host, port });

describe('the URL of a Redis', () => {
  it.each([
    ['redis://localhost', { kind: 'single', url: 'redis://localhost' }],
    ['rediss://user:pass@host:1/2', { kind: 'single', url: 'rediss://user:pass@host:1/2' }],
    ['redis+sentinel://one/gate', { kind: 'sentinel', ...open, nodes: [node('one', 26_379)], name: 'gate' }],
    [
      'rediss+sentinel://user:p%40ss@one:1,[::1]:2,10.0.0.1/my%20gate',
      {
        ...{ kind: 'sentinel', tls: true, credentials: { username: 'user', password: 'p@ss' }, name: 'my gate' },
        nodes: [node('one', 1), node('::1', 2), node('10.0.0.1', 26_379)],
      },
    ],
    [
      'redis+cluster://:se:cret@one,two:7000',
      {
        ...{ kind: 'cluster', tls: false, credentials: { password: 'se:cret' } },
        nodes: [node('one', 6379), node('two', 7000)],
      },
    ],
    ['redis+cluster://one/', { kind: 'cluster', ...open, nodes: [node('one', 6379)] }],
    [
      'redis+cluster://user@one',
      { kind: 'cluster', tls: false, credentials: { username: 'user' }, nodes: [node('one', 6379)] },
    ],
  ])('%s', (url, target) => expect(parseRedisUrl(url)).toEqual(target));

  it.each([
    '',
    'memory',
    'http://one',
    'redis://one/first',
    'redis://one/0/1',
    'redis://user:%zz@one',
    'redis+sentinel://one',
    'redis+cluster://',
    'redis+cluster://one/x',
    'redis+pool://one',
  ])('%j → TypeError', (url) => expect(() => parseRedisUrl(url)).toThrow(TypeError));
});
