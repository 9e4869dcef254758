const maxTime = 2 ** 53;

/** NumericDate (RFC 7519 §2): seconds since the epoch, finite, 0…2^53. */
export function isTime(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= maxTime;
}
