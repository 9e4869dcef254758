import { findLikeliest } from './likeliest-name.ts';

/** Names of all members, in every form if there are several. */
type MemberOf<O> = O extends unknown ? keyof O : never;

/** Valid values of an option, and what to write instead of others. An absent value is valid, unless the option is required. */
export type OptionCheck = readonly [isValid: (value: unknown) => boolean, fix: string, use?: 'required'];

/** The members that an options object may have: a missing or unknown name does not compile. `true`: its reader checks it. */
export type OptionMembers<O> = Readonly<Record<MemberOf<O>, true | OptionCheck>>;

/** Throws `TypeError` for options that are not an object, or have an unknown member or an invalid value. `within`: their path. */
export function checkOptionMembers<O>(caller: string, options: unknown, members: OptionMembers<O>, within = ''): void {
  if (!isObject(options)) throw new TypeError(`${caller}: write the options as an object`);
  checkMembers(caller, options, Object.keys(members));
  checkValues(options, members, within);
}

/** Throws `TypeError` for an invalid value. The value is not repeated: it may be a secret. */
export function checkValues(options: object, members: Readonly<Record<string, true | OptionCheck>>, within = ''): void {
  for (const [name, check] of Object.entries(members)) {
    if (check === true) continue;
    const [isValid, fix, use] = check;
    const value: unknown = Reflect.get(options, name);
    if ((value !== undefined || use === 'required') && !isValid(value)) throw new TypeError(`${within}${name}: ${fix}`);
  }
}

export const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;
export const isFunction = (value: unknown): boolean => typeof value === 'function';
export const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
export const isTextList = (value: unknown): value is readonly [string, ...string[]] =>
  Array.isArray(value) && value.length > 0 && [...value].every(isText); // `every` skips holes
export const isWithin = (least: number, most: number) => (value: unknown) =>
  typeof value === 'number' && value >= least && value <= most;
/** An object with these functions. */
export const hasFunctions =
  (...names: readonly string[]) =>
  (value: unknown): boolean =>
    isObject(value) && names.every((name) => isFunction(Reflect.get(value, name)));
/** A function that the package calls. */
export const callable: OptionCheck = [isFunction, 'write a function'];
export const oneOf = (...values: readonly unknown[]): OptionCheck => [
  (value) => values.includes(value),
  `write ${values.join(' or ')}`,
];

/** Throws `TypeError` for an unknown member, and for an object of a class without any: both would silently change nothing. */
export function checkMembers(what: string, value: object, known: readonly string[]): void {
  if (!isObject(value) || !(isPlain(value) || known.some((name) => name in value))) {
    throw new TypeError(`${what}: write an object with any of ${known.join(', ')}; await a promise first`);
  }
  for (const name of Object.keys(value)) if (!known.includes(name)) throw refuseMember(what, name, known);
}

/** Reports whether an object has no class: its prototype is the one of objects, also of another realm, or absent. */
export function isPlain(value: unknown): value is object {
  if (!isObject(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Names of fewer letters are nearly each other. */
const leastLetters = 4;

/** Members that other packages have, each with the member that has its meaning here. */
const names: readonly (readonly [string, string])[] = [
  ...['issuerBaseURL', 'issuerURL', 'authority', 'domain'].map((name) => [name, 'issuer'] as const),
  ...['publicKey', 'jwks'].map((name) => [name, 'keys'] as const),
  ...['tokenSigningAlg', 'alg'].map((name) => [name, 'algorithms'] as const),
  ...['leeway', 'clockSkew'].map((name) => [name, 'clockTolerance'] as const),
  ...['role', 'roles'].flatMap((name) => ['permissions', 'permissionsClaim'].map((to) => [name, to] as const)),
  ...['requiredScopes', 'scope'].map((name) => [name, 'scopes'] as const),
  ['strict', 'profile'],
  ['agent', 'fetch'],
];

/** Members that other packages have, and where their meaning is here. */
const elsewhere: ReadonlyMap<string, string> = new Map([
  ...['secret', 'secretOrKey'].map((name) => [name, 'Symmetric keys are not accepted; keys has public ones'] as const),
  ...['authRequired', 'credentialsRequired'].map(
    (name) => [name, 'Write authorize.optional(policy) at the route'] as const,
  ),
  ...['scope', 'scopes', 'requiredScopes', 'validators'].map(
    (name) => [name, 'It belongs into the policy of a route'] as const,
  ),
  ...['getToken', 'cookie'].map((name) => [name, 'Tokens are read from the Authorization header only'] as const),
]);

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
  const hint = meant === undefined ? (elsewhere.get(name) ?? '').replace(/^./, '. $&') : `. Did you mean ${meant}?`;
  return new TypeError(`${what}: there is no ${name}; write any of ${known.join(', ')}${hint}`);
}

/** The error for a member that is `undefined`: a variable that was never set would change nothing. */
export function refuseUndefined(what: string, name: string): TypeError {
  return new TypeError(`${what}: ${name} is undefined; write a value, or leave it out`);
}

export type Defined<O> = { [K in keyof O as undefined extends O[K] ? never : K]: O[K] } & {
  [K in keyof O as undefined extends O[K] ? K : never]?: Exclude<O[K], undefined>;
};

/** Returns the members that are not `undefined`, for options whose members may only be absent. */
export function omitUndefined<O extends object>(members: O): Defined<O> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Defined<O>; // the rest
}
