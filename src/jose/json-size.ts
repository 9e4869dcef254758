// Bytes on a 64-bit heap without compressed pointers, as V8 lays objects out; each is rounded up rather than down.
const word = 8;
const perString = 24;
const perNumber = 16;
/** Map, properties, elements, and four members that V8 leaves room for. */
const perObject = 56;
/** Map, properties, elements, length, and the header of the elements. */
const perArray = 48;
/** A value, and what the shape of the object says of a member; more for a name that no other token has. */
const perMember = 80;
/** Members from which on an object is a hash table: three words each, at most half of them taken. */
const tableFrom = 20;
const perTableMember = 10 * word;
const latin1 = /^[\0-\xff]*$/;

/** How many bytes a parsed JSON value takes, by its shape; never much less. */
export function sizeOfJson(value: unknown): number {
  if (typeof value === 'string') return perString + value.length * (latin1.test(value) ? 1 : 2);
  if (typeof value === 'number') return perNumber;
  if (typeof value !== 'object' || value === null) return 0;
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + word + sizeOfJson(item), perArray);
  const names = Object.keys(value);
  const perName = names.length > tableFrom ? perTableMember + perMember : perMember;
  let size = perObject;
  for (const name of names) size += perName + perString + name.length * 2 + sizeOfJson(Reflect.get(value, name));
  return size;
}
