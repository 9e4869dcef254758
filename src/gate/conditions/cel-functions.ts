export type Cel = typeof import('@bufbuild/cel');
type CelFunction = ReturnType<Cel['celFunc']>;

/** Presence of a member: a call that replaces the macro `has`, which calls a member with `null` absent. */
export const hasFunction = '@has';
export const timestampType = 'google.protobuf.Timestamp';

const integer = /^[+-]?\d{1,19}$/;
const decimal = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d{1,3})?$/i;
const maxInt = 2n ** 63n;
/** Years 1 to 9999. */
const timestamps = { least: -62_135_596_800n, most: 253_402_300_799n } as const;

/** Returns the message of a time in whole seconds since the epoch. Throws `RangeError` outside the years 1 to 9999. */
export function writeTimestamp(seconds: bigint) {
  if (seconds < timestamps.least || seconds > timestamps.most) throw new RangeError('timestamp out of range');
  return { $typeName: timestampType, seconds, nanos: 0 } as const;
}

/**
 * Creates the functions that the package has with another meaning: `timestamp(int)` takes seconds, strings are numbers only as CEL
 * writes numbers, `in` and `has` are true for a member with `null`, and fields of a time depend neither on the time zone of
 * this host nor on a formatter for each call.
 */
export function createFunctions({ celFunc, celMethod, CelScalar, isCelMap, mapType, objectType }: Cel): CelFunction[] {
  const { BOOL, DOUBLE, DYN, INT, STRING, UINT } = CelScalar;
  const timestamp = objectType(timestampType);
  const keys = [STRING, INT, UINT, DOUBLE, BOOL];
  return [
    celFunc('timestamp', [INT], timestamp, writeTimestamp),
    celFunc('int', [STRING], INT, readInteger),
    celFunc('double', [STRING], DOUBLE, readDecimal),
    celMethod('contains', STRING, [STRING], BOOL, function (part) {
      return contains(this, part);
    }),
    celFunc(hasFunction, [DYN, STRING], BOOL, (value, name) => isCelMap(value) && value.get(name) !== undefined),
    ...keys.map((key) => celFunc('@in', [key, mapType(DYN, DYN)], BOOL, (name, map) => map.get(name) !== undefined)),
    ...Object.entries(timeFields).flatMap(([name, read]) => [
      celMethod(name, timestamp, [], INT, function () {
        return BigInt(read(readTime(this)));
      }),
      celMethod(name, timestamp, [STRING], INT, function (zone) {
        return BigInt(read(shiftTime(readTime(this), zone)));
      }),
    ]),
  ];
}

/** Comparisons of characters that `includes` may take, at worst each of one string with each of the other. */
const maxComparisons = 2 ** 17;

/** Reports whether a string contains another in a time that grows with the sum of their lengths (Knuth, Morris, Pratt). */
function contains(text: string, part: string): boolean {
  if (text.length * part.length <= maxComparisons) return text.includes(part);
  // The first characters have the borders of the part: lengths of the longest proper prefixes that are also suffixes.
  const all = part + text;
  const borders = new Uint32Array(part.length);
  for (let i = 1, matched = 0; i < all.length; i++) {
    while (matched > 0 && all[i] !== part[matched]) matched = borders[matched - 1] ?? 0;
    if (all[i] === part[matched]) matched++;
    borders[i] = matched;
    if (matched === part.length && i >= 2 * part.length - 1) return true;
  }
  return false;
}

function readInteger(text: string): bigint {
  const value = integer.test(text) ? BigInt(text.replace('+', '')) : maxInt;
  if (value >= maxInt || value < -maxInt) throw new RangeError('not an int');
  return value;
}

function readDecimal(text: string): number {
  const value = decimal.test(text) ? Number(text) : Number.NaN;
  if (!Number.isFinite(value)) throw new RangeError('not a double');
  return value;
}

/** Reads the fields of a time whose UTC fields are the fields of its zone. */
const timeFields: Readonly<Record<string, (time: Date) => number>> = {
  getFullYear: (time) => time.getUTCFullYear(),
  getMonth: (time) => time.getUTCMonth(),
  getDate: (time) => time.getUTCDate(),
  getDayOfMonth: (time) => time.getUTCDate() - 1,
  getDayOfWeek: (time) => time.getUTCDay(),
  getDayOfYear: (time) =>
    (startOfDay(time, time.getUTCMonth(), time.getUTCDate()) - startOfDay(time, 0, 1)) / 86_400_000,
  getHours: (time) => time.getUTCHours(),
  getMinutes: (time) => time.getUTCMinutes(),
  getSeconds: (time) => time.getUTCSeconds(),
  getMilliseconds: (time) => time.getUTCMilliseconds(),
};

function startOfDay(time: Date, month: number, day: number): number {
  return new Date(0).setUTCFullYear(time.getUTCFullYear(), month, day);
}

function readTime({ message }: { readonly message: unknown }): Date {
  const { seconds, nanos } = message as { readonly seconds: bigint; readonly nanos: number }; // of a timestamp
  return new Date(Number(seconds) * 1000 + Math.floor(nanos / 1_000_000));
}

const offset = /^([+-]?)(\d\d):(\d\d)$/;
const formats = new Map<string, Intl.DateTimeFormat>();

/** Reports whether CEL knows a time zone: an offset, or a name such as `Europe/Berlin`. */
export function isTimeZone(zone: string): boolean {
  try {
    return !Number.isNaN(shiftTime(new Date(0), zone).getTime());
  } catch {
    return false;
  }
}

/** Moves a time so that its UTC fields are the fields in the zone. Throws `RangeError` for an unknown zone. */
function shiftTime(time: Date, zone: string): Date {
  const [, sign, hours, minutes] = offset.exec(zone) ?? [];
  if (hours !== undefined) {
    const shift = (Number(hours) * 60 + Number(minutes)) * 60_000;
    return new Date(time.getTime() + (sign === '-' ? -shift : shift));
  }
  const format = formats.get(zone) ?? openFormat(zone);
  const parts = new Map(format.formatToParts(time).map(({ type, value }) => [type, Number(value)]));
  const read = (name: Intl.DateTimeFormatPartTypes): number => parts.get(name) ?? Number.NaN;
  const shifted = new Date(0);
  shifted.setUTCFullYear(read('year'), read('month') - 1, read('day'));
  shifted.setUTCHours(read('hour'), read('minute'), read('second'), time.getUTCMilliseconds());
  return shifted;
}

/** Zones are literals of conditions, so their number is bounded. */
function openFormat(timeZone: string): Intl.DateTimeFormat {
  const digits = { month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' } as const;
  const format = new Intl.DateTimeFormat('en-US', { timeZone, hourCycle: 'h23', year: 'numeric', ...digits });
  formats.set(timeZone, format);
  return format;
}
