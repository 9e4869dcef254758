import { isJsonObject, type JsonObject } from '../../jose/json.ts';
import { type CallInput, type HeaderLine, type Input, unread } from './input.ts';

const refusedStatuses: ReadonlySet<unknown> = new Set([401, 403]);

/** Reads one call of a HAR (HTTP archive): number `entry`, from 1, or the first that was answered with 401 or 403. */
export function readHar(har: JsonObject, entry: number | undefined): Input {
  const entries = isJsonObject(har['log']) ? har['log']['entries'] : undefined;
  if (!Array.isArray(entries)) return unread('The HAR has no list of entries. Export it from the browser again.');
  const calls = entries.map(readEntry);
  if (entry !== undefined) {
    return calls[entry - 1] ?? unread(`The HAR has ${calls.length} entries. Name one of them: --entry 1.`);
  }
  return (
    calls.find((call) => refusedStatuses.has(call?.answer?.status)) ??
    unread(`None of the ${calls.length} calls in the HAR was answered with 401 or 403. Name one: --entry 1.`)
  );
}

function readEntry(entry: unknown): CallInput | undefined {
  if (!isJsonObject(entry) || !isJsonObject(entry['request'])) return undefined;
  const { method, url, headers } = entry['request'];
  if (typeof method !== 'string' || typeof url !== 'string') return undefined;
  const response = isJsonObject(entry['response']) ? entry['response'] : {};
  const { status } = response;
  return {
    kind: 'har',
    method,
    url,
    headers: readHeaders(headers),
    ...(typeof status === 'number' && { answer: { status, headers: readHeaders(response['headers']) } }),
  };
}

/** Pseudo-headers of HTTP/2 (`:path`) repeat the URL. */
function readHeaders(headers: unknown): readonly HeaderLine[] {
  if (!Array.isArray(headers)) return [];
  return headers.flatMap((each: unknown): readonly HeaderLine[] => {
    if (!isJsonObject(each)) return [];
    const { name, value } = each;
    return typeof name === 'string' && typeof value === 'string' && !name.startsWith(':') ? [[name, value]] : [];
  });
}
