import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { needs } from '../support/programs.ts';

it('passes', () => expect(1).toBe(1));

describe('needs nginx and Redis', needs('nginx', 'redis-server'), () => {
  it('first', () => {});
  it('second', () => {});
});

it('needs nginx', needs('nginx'), () => {});

if (process.env['FIXTURE'] === 'hook that skips') {
  describe('hook that skips', () => {
    beforeEach((context) => context.skip());
    it('first', () => {});
    it('second', () => {});
  });
}

if (process.env['FIXTURE'] === 'hook that fails') {
  describe('hook that fails', () => {
    beforeAll(() => {
      throw new Error('as intended');
    });
    it('first', () => {});
    it('second', () => {});
  });
}
