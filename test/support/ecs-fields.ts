import { isIP } from 'node:net';

/**
 * Fields of the Elastic Common Schema that the log and the audit trail use, with their types: of version 8.17.0, compared with
 * `generated/csv/fields.csv` of https://github.com/elastic/ecs at the tag v8.17.0.
 */
const fields: Readonly<Record<string, 'date' | 'ip' | 'keyword' | 'long' | 'match_only_text'>> = {
  '@timestamp': 'date',
  'client.ip': 'ip',
  'ecs.version': 'keyword',
  'event.action': 'keyword',
  'event.duration': 'long',
  'event.kind': 'keyword',
  'event.outcome': 'keyword',
  'event.reason': 'keyword',
  'event.reference': 'keyword',
  'http.request.id': 'keyword',
  'http.request.method': 'keyword',
  'http.response.status_code': 'long',
  'log.level': 'keyword',
  message: 'match_only_text',
  'rule.id': 'keyword',
  'service.name': 'keyword',
  'trace.id': 'keyword',
  'url.domain': 'keyword',
  'user.id': 'keyword',
};
/** Values that ECS allows in a field. */
const values: Readonly<Record<string, readonly string[]>> = {
  'ecs.version': ['8.17.0'],
  'event.kind': ['alert', 'asset', 'enrichment', 'event', 'metric', 'state', 'pipeline_error', 'signal'],
  'event.outcome': ['failure', 'success', 'unknown'],
};

/** Returns the members of a line that are neither under `portcullis.` nor a field of ECS with a value of its type. */
export function findForeignFields(line: Readonly<Record<string, unknown>>): readonly string[] {
  return Object.entries(line)
    .filter(([name, value]) => !name.startsWith('portcullis.') && !isValue(name, value))
    .map(([name]) => name);
}

function isValue(name: string, value: unknown): boolean {
  const type = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (type === undefined) return false;
  if (type === 'long') return Number.isSafeInteger(value);
  if (typeof value !== 'string' || values[name]?.includes(value) === false) return false;
  if (type === 'date') return new Date(value).toISOString() === value;
  return type !== 'ip' || isIP(value) !== 0;
}
