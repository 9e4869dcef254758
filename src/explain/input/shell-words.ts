const escapes: ReadonlyMap<string, string> = new Map([
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
]);

/** The end of a command in a shell line: what comes after it belongs to another program. */
const commandEnd = /[|;&<>\n]/;

/**
 * Splits the first command of a POSIX shell line into words: quotes, `$'…'`, backslashes, continued lines. Nothing is
 * expanded: `$TOKEN` stays as it is written. `undefined` if a quote is not closed.
 */
export function splitShellWords(text: string): readonly string[] | undefined {
  // A caret continues a line of cmd.exe, a backtick one of PowerShell.
  const line = text.replace(/[\\^`]\r?\n/g, ' ');
  const words: string[] = [];
  let word: string | undefined;
  for (let at = 0; at < line.length; ) {
    const character = line.charAt(at);
    if (/[ \t\r]/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
      at++;
    } else if (character === "'" || character === '"' || line.startsWith("$'", at)) {
      const quoted = readQuoted(line, at);
      if (quoted === undefined) return undefined;
      word = (word ?? '') + quoted.text;
      at = quoted.end;
    } else if (commandEnd.test(character)) {
      break;
    } else {
      const isEscaped = character === '\\' && at + 1 < line.length;
      word = (word ?? '') + (isEscaped ? line.charAt(at + 1) : character);
      at += isEscaped ? 2 : 1;
    }
  }
  return word === undefined ? words : [...words, word];
}

interface Quoted {
  readonly text: string;
  /** Index behind the closing quote. */
  readonly end: number;
}

function readQuoted(line: string, start: number): Quoted | undefined {
  const isAnsi = line.charAt(start) === '$';
  const quote = line.charAt(isAnsi ? start + 1 : start);
  let text = '';
  for (let at = start + (isAnsi ? 2 : 1); at < line.length; at++) {
    const character = line.charAt(at);
    if (character === quote) return { text, end: at + 1 };
    const next = line.charAt(at + 1);
    if (character !== '\\' || (quote === "'" && !isAnsi) || (quote === '"' && !/["\\$`]/.test(next))) text += character;
    else if (isAnsi && next === 'u') {
      text += String.fromCharCode(Number.parseInt(line.slice(at + 2, at + 6), 16) || 0xfffd);
      at += 5;
    } else {
      text += isAnsi ? (escapes.get(next) ?? next) : next;
      at++;
    }
  }
  return undefined;
}
