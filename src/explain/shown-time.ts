const units: readonly (readonly [name: string, seconds: number])[] = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
  ['s', 1],
];

/** A number of seconds in its two largest units. */
export function formatDuration(seconds: number): string {
  const whole = Math.floor(Math.abs(seconds));
  const first = Math.max(
    0,
    units.findIndex(([, length]) => whole >= length),
  );
  if (whole === 0) return '0 s';
  const [[name, length] = ['s', 1], next] = units.slice(first, first + 2);
  const count = `${Math.floor(whole / length)} ${name}`;
  return next === undefined ? count : `${count} ${Math.floor((whole % length) / next[1])} ${next[0]}`;
}

/** A time of a token in UTC; the number if it is not a valid date. */
export function formatInstant(seconds: number): string {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? String(seconds) : date.toISOString().replace(/\.000Z$/, 'Z');
}

export function formatDistance(seconds: number, now: number): string {
  const distance = formatDuration(seconds - now);
  return `${formatInstant(seconds)}, ${seconds > now ? `in ${distance}` : `${distance} ago`}`;
}
