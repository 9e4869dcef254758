import { refuseMember } from '../option-members.ts';

/** Throws `TypeError` for an unknown member: a misspelled one would silently require nothing. */
export function checkMembers(what: string, value: object, known: readonly string[]): void {
  for (const name of Object.keys(value)) {
    if (!known.includes(name)) throw refuseMember(what, name, known);
  }
}

/** Throws `TypeError` for a member that is `undefined`: a variable that was never set would require nothing. */
export function checkDefined(what: string, value: object): void {
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) throw new TypeError(`${what}: ${name} is undefined; write a value, or leave it out`);
  }
}

// RFC 6749 §3.3 scope-token; acr_values are separated by spaces as well.
const scopeGrammar = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** Reads a list of strings that match a grammar, by default scopes. Throws `TypeError` for any other value. */
export function checkScopeNames(name: string, value: unknown, grammar = scopeGrammar): readonly string[] {
  if (!Array.isArray(value) || value.length === 0) {
    throw new TypeError(`policy: ${name} must be a list with at least one string; leave it out to require none`);
  }
  if (!value.every((each) => typeof each === 'string' && grammar.test(each))) {
    throw new TypeError(`policy: ${name} must have one string for each, without spaces and quotation marks`);
  }
  return [...value];
}
