import { expect, it, vi } from 'vitest';
import { createRedisReplayStore } from '../../src/dpop/replay-redis.ts';

vi.mock('@redis/client', () => {
  throw new Error('not installed');
});

it('the client of Redis is not installed → an error that names the package', async () => {
  await expect(createRedisReplayStore('redis://localhost')).rejects.toThrow('npm install @redis/client');
});
