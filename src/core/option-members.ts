import { findLikeliest } from './likeliest-name.ts';

/** Names of all members, in every form if there are several. */
type MemberOf<O> = O extends unknown ? keyof O : never;

/** The members that an options object may have: a missing or unknown name does not compile. */
export type OptionMembers<O> = Readonly<Record<MemberOf<O>, true>>;

/** Throws `TypeError` for options that are not an object, or have an unknown member. */
export function checkOptionMembers<O>(caller: string, options: unknown, members: OptionMembers<O>): void {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`${caller}: write the options as an object`);
  }
  checkMembers(caller, options, Object.keys(members));
}

/** Throws `TypeError` for an unknown member: a misspelled one would silently change nothing. */
export function checkMembers(what: string, value: object, known: readonly string[]): void {
  for (const name of Object.keys(value)) if (!known.includes(name)) throw refuseMember(what, name, known);
}

/** Names of fewer letters are nearly each other. */
const leastLetters = 4;

/** Members that other packages have, each with the member that has its meaning here. */
const names: readonly (readonly [string, string])[] = [
  ['issuerBaseURL', 'issuer'],
  ['domain', 'issuer'],
  ['secret', 'issuer'],
  ['leeway', 'clockTolerance'],
  ['roles', 'permissions'],
  ['roles', 'permissionsClaim'],
];

/** Members of earlier versions, each with the member that replaces it. A member of the same name elsewhere is not meant. */
const removed: ReadonlyMap<string, string> = new Map([
  ['claimConditions', 'claims'],
  ['denyList', 'isRevoked'],
  ['statusLists', 'isRevoked'],
]);

export function refuseMember(what: string, name: string, known: readonly string[]): TypeError {
  const replacement = removed.get(name);
  if (replacement !== undefined && known.includes(replacement)) {
    return new TypeError(`${what}: ${name} was removed; write ${replacement}`);
  }
  const [, other] = names.find(([from, to]) => from === name && known.includes(to)) ?? [];
  const meant = other ?? findLikeliest(name, known, leastLetters);
  const hint = meant === undefined ? '' : `. Did you mean ${meant}?`;
  return new TypeError(`${what}: there is no ${name}; write any of ${known.join(', ')}${hint}`);
}

/** The error for a member that is `undefined`: a variable that was never set would change nothing. */
export function refuseUndefined(what: string, name: string): TypeError {
  return new TypeError(`${what}: ${name} is undefined; write a value, or leave it out`);
}

type Defined<O> = { [K in keyof O as undefined extends O[K] ? never : K]: O[K] } & {
  [K in keyof O as undefined extends O[K] ? K : never]?: Exclude<O[K], undefined>;
};

/** Returns the members that are not `undefined`, for options whose members may only be absent. */
export function omitUndefined<O extends object>(members: O): Defined<O> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Defined<O>; // the rest
}
