import { refuseMember } from '../option-members.ts';

/** Throws `TypeError` for a member that is not known: one that is misspelled would ask for nothing, without a word. */
export function checkMembers(what: string, value: object, known: readonly string[]): void {
  for (const name of Object.keys(value)) {
    if (!known.includes(name)) throw refuseMember(what, name, known);
  }
}

/** Throws `TypeError` for a member that is there and is `undefined`: a variable that was never set would ask for nothing. */
export function checkDefined(what: string, value: object): void {
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) throw new TypeError(`${what}: ${name} is undefined; write a value, or leave it out`);
  }
}
