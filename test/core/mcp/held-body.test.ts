import { describe, expect, it } from 'vitest';
import { type BodySender, HeldBody } from '../../../src/core/mcp/held-body.ts';

const mebibyte = 1024 * 1024;

/** Adds chunks to bodies of this sender until one is refused. Returns how many bytes were held, and the reason. */
function fill(sender: BodySender, chunk: Buffer, chunksOfBody: number) {
  const bodies: HeldBody[] = [];
  for (let held = 0; ; ) {
    const body = new HeldBody(sender);
    bodies.push(body);
    for (let i = 0; i < chunksOfBody; i++) {
      const refused = body.add(chunk);
      if (refused !== undefined) return { bodies, held, reason: refused.reason };
      held += chunk.length;
    }
  }
}
const release = ({ bodies }: { readonly bodies: readonly HeldBody[] }): void => {
  for (const body of bodies) body.release();
};

describe('messages that are being read', () => {
  const half = Buffer.alloc(mebibyte / 2);

  it('more than 1 MiB in one body → message_too_large', () => {
    const body = new HeldBody({ client: 'a' });
    expect(body.add(Buffer.alloc(mebibyte))).toBeUndefined();
    expect(body.add(Buffer.alloc(1))?.reason).toBe('message_too_large');
    body.release();
  });

  it.each<readonly [string, BodySender, number]>([
    ['no share of its own', { client: 'a' }, 8],
    ['half', { client: 'a', share: 0.5 }, 16],
    ['a share that is smaller than a message', { client: 'a', share: 0.001 }, 2],
    ['share 1', { client: 'a', share: 1 }, 32],
    ['no address', { client: '', share: 0.25 }, 32],
  ])('%s → refused at %3$i MiB, and what is released can be used again', (_name, sender, limit) => {
    for (let round = 0; round < 2; round++) {
      const filled = fill(sender, half, 2);
      expect(filled.reason).toBe('too_many_messages');
      expect(filled.held).toBeLessThanOrEqual(limit * mebibyte);
      expect(filled.held).toBeGreaterThanOrEqual(limit * mebibyte - mebibyte);
      release(filled);
    }
  });

  it('a client at its share → other clients have theirs, and all together 32 MiB', () => {
    const filled = ['a', 'b', 'c', 'd', 'e'].map((client) => fill({ client }, half, 2));
    expect(filled.map(({ held }) => held >= 7 * mebibyte)).toEqual([true, true, true, true, false]);
    expect(filled.reduce((sum, { held }) => sum + held, 0)).toBeLessThanOrEqual(32 * mebibyte);
    for (const each of filled) release(each);
  });

  it('chunks of one byte → count with the memory that they take', () => {
    const filled = fill({ client: 'a' }, Buffer.alloc(1), 10_000);
    expect(filled.held).toBeLessThan(40_000);
    release(filled);
  });
});
