import { type HeaderLine, type Input, unread } from './input.ts';

const command = /(?:^|[\s|=(])(?:Invoke-WebRequest|Invoke-RestMethod|iwr|irm)\s([\s\S]*)$/i;
/** A text in quotes, in which a backtick takes the meaning from the next character. */
const quoted = String.raw`"((?:${'`'}[\s\S]|""|[^"${'`'}])*)"|'((?:''|[^'])*)'`;
const pair = new RegExp(String.raw`(?:${quoted}|([\w-]+))\s*=\s*(?:${quoted}|(\$[\w.:]+))`, 'g');

/** Whether a text is a web request of PowerShell, as the tools of a browser copy one. */
export function isPowerShell(text: string): boolean {
  return (
    /^(?:PS [^>\n]*> ?)?(?:\$[\w.]+ = |Invoke-WebRequest |Invoke-RestMethod |iwr |irm )/i.test(text) &&
    command.test(text)
  );
}

/** Reads `Invoke-WebRequest` and `Invoke-RestMethod`. Nothing of it is run: `$token` stays as it is written. */
export function readPowerShell(text: string): Input {
  // A backtick at the end continues a line.
  const [, rest = ''] = command.exec(text.replace(/`\r?\n/g, ' ')) ?? [];
  const url =
    readArgument(rest, 'Uri') ??
    readQuoted(new RegExp(`^\\s*(?:${quoted})`).exec(rest)) ??
    /^\s*(https?:\S+)/i.exec(rest)?.[1];
  if (url === undefined || !URL.canParse(url)) {
    return unread('The PowerShell command has no -Uri that is a whole URL. Write it with https:// and its host.');
  }
  const [, block = ''] = /-Headers\s+@\{([\s\S]*?)\}(?:\s|$)/i.exec(rest) ?? [];
  const headers = [...block.matchAll(pair)].map((found): HeaderLine => {
    const [, name1, name2, name3, value1, value2, value3] = found;
    return [unquote(name1 ?? name2 ?? name3 ?? ''), unquote(value1 ?? value2 ?? value3 ?? '')];
  });
  return { kind: 'curl', method: readArgument(rest, 'Method')?.toUpperCase() ?? 'GET', url, headers };
}

/** The value of a parameter, in quotes or without. */
function readArgument(text: string, name: string): string | undefined {
  const found = new RegExp(`(?:^|\\s)-${name}[\\s:]+(?:${quoted}|([^\\s"'@]+))`, 'i').exec(text);
  return readQuoted(found);
}

function readQuoted(found: RegExpExecArray | null): string | undefined {
  const value = found?.[1] ?? found?.[2] ?? found?.[3];
  return value === undefined ? undefined : unquote(value);
}

function unquote(text: string): string {
  return text.replace(/`([\s\S])|""/g, (_, character?: string) => character ?? '"');
}
