import type { LogLineInput } from './input.ts';

// Colours of a terminal, which may be copied.
// biome-ignore lint/suspicious/noControlCharactersInRegex: it removes control characters
const colours = /\x1b\[\d+m/g;
const start = /^\d\d:\d\d:\d\d\.\d{3} \w+ \w+ /;
const field = /(?:^| )(\w+)=(.*?)(?= \w+=|$)/g;

export function readTerminalFields(line: string): Readonly<Record<string, string>> | undefined {
  const text = line.replace(colours, '');
  if (!start.test(text)) return undefined;
  return Object.fromEntries([...text.matchAll(field)].map(([, name = '', value = '']) => [name, value]));
}

export function readTerminalLines(text: string): LogLineInput | undefined {
  const fields = text
    .split(/\r?\n/)
    .map(readTerminalFields)
    .findLast((each) => (each?.['reason'] ?? each?.['would_refuse']) !== undefined);
  if (fields === undefined) return undefined;
  const { status } = fields;
  return { kind: 'log-line', fields: { ...fields, ...(status !== undefined && { status: Number(status) }) } };
}
