import { failures } from '../../core/failures.ts';
import { isJsonObject, parseJsonObject } from '../../core/jose/json.ts';
import type { LogLineInput } from './input.ts';

type Fields = LogLineInput['fields'];

// Colours of a terminal, which may be copied.
// biome-ignore lint/suspicious/noControlCharactersInRegex: it removes control characters
const colours = /\x1b\[\d+m/g;
const start = /^\d\d:\d\d:\d\d\.\d{3} \w+ \w+ /;
const field = /(?:^| )(\w+)=(.*?)(?= \w+=|$)/g;
/** A log line after a prefix of Docker, journald and others. */
const prefixed = /^[^{]{0,200}(\{"time":.*\})\s*$/;
/** The line of `explainRefusals`. */
const explained = /portcullis: (\S{1,200}) (\S{1,2000}) refused: (\w+)(?:; (.*))?$/;
/** Characters of a line, at most. */
const maxLine = 65_536;
/** Levels of JSON around a log line, such as of Docker, CloudWatch or a cloud's log explorer. */
const maxWrappers = 4;

export function readTerminalFields(line: string): Fields | undefined {
  const text = line.replace(colours, '').trimEnd();
  if (!start.test(text)) return undefined;
  const { status, ...fields } = Object.fromEntries([...text.matchAll(field)].map(([, name, value]) => [name, value]));
  return { ...fields, ...(status !== undefined && { status: Number(status) }) };
}

/** The library joins the values of a list by commas. */
function splitList(name: string, value: unknown): readonly [name: string, value: unknown] {
  const isList = typeof value === 'string' && value.includes(', ') && /^(?:expected|received)$/.test(name);
  return [name, isList ? value.split(', ') : value];
}

/** Reads the facts between the reason and its fix. */
function readExplained(line: string): Fields | undefined {
  const [, method, path, reason = '', tail = ''] = explained.exec(line.replace(colours, '').trimEnd()) ?? [];
  if (method === undefined) return undefined;
  const [, { fix } = { fix: '' }] = Object.entries(failures).find(([name]) => name === reason) ?? [];
  const facts = tail.endsWith(fix) ? tail.slice(0, tail.length - fix.length) : tail;
  const pairs = facts.split(/; (?=[A-Za-z_]+ |$)/).map((fact) => {
    const [, name = '', value = ''] = /^(\w+) (.*)$/.exec(fact) ?? [];
    return splitList(name, value.replace(/^\(empty\)$/, ''));
  });
  return { ...Object.fromEntries(pairs), method, path, reason };
}

/** Finds the log line of a refusal in an object: itself, or a member that is an object or JSON. */
export function findLogged(value: unknown, depth = 0): Fields | undefined {
  const object = typeof value === 'string' ? readText(value) : value;
  if (!isJsonObject(object) || depth > maxWrappers) return undefined;
  const { context } = object;
  // An event of the library has its facts there.
  const facts = isJsonObject(context) ? Object.entries(context).map((fact) => splitList(...fact)) : [];
  // With `would_refuse`, report mode prevented the refusal.
  if (typeof (object['reason'] ?? object['would_refuse']) === 'string')
    return { ...Object.fromEntries(facts), ...object };
  for (const member of Object.values(object)) {
    const found = findLogged(member, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

function readText(text: string): Fields | undefined {
  if (text.startsWith('{')) return parseJsonObject(Buffer.from(text));
  return readExplained(text) ?? readTerminalFields(text);
}

/** Bodies of responses are JSON too: a log line among other text begins with its time. */
function readLine(line: string): Fields | undefined {
  if (line.length > maxLine) return undefined;
  const [, json] = prefixed.exec(line) ?? [];
  return json === undefined && line.startsWith('{') ? undefined : findLogged(json ?? line);
}

/** Separates the log lines of refusals, of which the last is the newest, from all other lines. */
export function splitLogLines(text: string): { readonly logged: LogLineInput | undefined; readonly rest: string } {
  const lines = text.split(/\r?\n/);
  const written = lines.filter((line) => line.trim() !== '');
  const isJson = written.length > 1 && written.every((line) => line.startsWith('{'));
  const read = lines.map((line) => (isJson ? findLogged(line) : readLine(line)));
  const found = read.filter((fields) => fields !== undefined);
  const fields = found.at(-1);
  return {
    logged: fields && { kind: 'log-line', fields, count: found.length },
    rest: fields === undefined ? text : lines.filter((_, index) => read[index] === undefined).join('\n'),
  };
}
