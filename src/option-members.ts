import { findLikeliest } from './likeliest-name.ts';

/** The names of all members, those of every form if there are several. */
type MemberOf<O> = O extends unknown ? keyof O : never;

/** The members that an options object may have: a name that is missing, or is no member, does not compile. */
export type OptionMembers<O> = Readonly<Record<MemberOf<O>, true>>;

/**
 * Throws `TypeError` for options that are no object, or have a member that does not exist: a misspelled option would
 * change nothing, without a word.
 */
export function checkOptionMembers<O>(caller: string, options: unknown, members: OptionMembers<O>): void {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`${caller}: write the options as an object`);
  }
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(members, name)) {
      throw refuseMember(caller, name, Object.keys(members));
    }
  }
}

/** Names of fewer letters are nearly each other. */
const leastLetters = 4;

/** What is wrong with a member that does not exist. */
export function refuseMember(what: string, name: string, known: readonly string[]): TypeError {
  const meant = findLikeliest(name, known, leastLetters);
  const hint = meant === undefined ? '' : `. Did you mean ${meant}?`;
  return new TypeError(`${what}: there is no ${name}; write any of ${known.join(', ')}${hint}`);
}
