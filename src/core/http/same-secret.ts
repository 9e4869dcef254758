import { hash, timingSafeEqual } from 'node:crypto';

/** Compares hashes, in a time that says nothing about how much is equal. */
export function isSameSecret(sent: string, expected: string): boolean {
  return timingSafeEqual(hash('sha256', sent, 'buffer'), hash('sha256', expected, 'buffer'));
}
