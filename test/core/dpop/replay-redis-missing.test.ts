import { expect, it, vi } from 'vitest';
import { createRedisReplayStore } from '../../../src/core/dpop/replay-redis.ts';

vi.mock('@redis/client', () => {
  throw new Error('not installed');
});

it('the client of Redis is not installed → an error that names the package, and why', async () => {
  await expect(createRedisReplayStore('redis://localhost')).rejects.toMatchObject({
    message: expect.stringContaining('npm install @redis/client'),
    cause: expect.any(Error),
  });
});
