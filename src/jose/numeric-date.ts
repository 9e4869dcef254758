/** Seconds: the year 5138. What is larger was meant in milliseconds, and would never end. */
const maxTime = 1e11;

/** NumericDate (RFC 7519 §2): seconds since the epoch, finite, 0…10^11. */
export function isTime(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= maxTime;
}
