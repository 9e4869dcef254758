import type { LogLineInput } from './input.ts';

// Colours, as a terminal gets them; who copies from one loses them.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
const colours = /\x1b\[\d+m/g;
const start = /^\d\d:\d\d:\d\d\.\d{3} \w+ \w+ /;
const field = /(?:^| )(\w+)=(.*?)(?= \w+=|$)/g;

/** Reads the last refused call in lines of our log as it stands on a terminal; `undefined` if there is none. */
export function readTerminalLines(text: string): LogLineInput | undefined {
  const lines = text
    .replace(colours, '')
    .split(/\r?\n/)
    .filter((line) => start.test(line))
    .map((line) => Object.fromEntries([...line.matchAll(field)].map(([, name = '', value = '']) => [name, value])));
  const fields = lines.findLast((each) => (each['reason'] ?? each['would_refuse']) !== undefined);
  if (fields === undefined) return undefined;
  const { status } = fields;
  return { kind: 'log-line', fields: { ...fields, ...(status !== undefined && { status: Number(status) }) } };
}
