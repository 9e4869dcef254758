// The parts of node:util that the sources call.
export const promisify = () => () => Promise.reject(new Error('not in a browser'));

/** Like parseArgs of Node with `strict: false`, for options with one value each. */
export function parseArgs({ args, options }) {
  const names = new Map(Object.entries(options).map(([name, { short }]) => [short, name]));
  const [tokens, positionals, values, rest] = [[], [], {}, [...args]];
  const add = (name, value) => {
    tokens.push({ kind: 'option', name, value });
    values[name] = value ?? true;
  };
  const take = (name, own) => add(name, own ?? (options[name]?.type === 'string' ? rest.shift() : undefined));
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    const [, long, own] = /^--([^=]+)(?:=(.*))?$/s.exec(word) ?? [];
    if (long !== undefined) take(long, own);
    else if (word !== '--' && /^-./.test(word)) takeLetters(word.slice(1));
    else if (word !== '--') {
      tokens.push({ kind: 'positional', value: word });
      positionals.push(word);
    }
  }
  return { tokens, positionals, values };

  function takeLetters([letter, ...others]) {
    const name = names.get(letter) ?? letter;
    if (options[name]?.type === 'string') return take(name, others.join('') || undefined);
    add(name);
    if (others.length > 0) takeLetters(others);
  }
}
