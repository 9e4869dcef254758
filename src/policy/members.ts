/** Throws `TypeError` for a member that is not known: one that is misspelled would ask for nothing, without a word. */
export function checkMembers(what: string, value: object, known: readonly string[]): void {
  for (const name of Object.keys(value)) {
    if (!known.includes(name)) throw new TypeError(`${what}: there is no ${name}; write any of ${known.join(', ')}`);
  }
}
