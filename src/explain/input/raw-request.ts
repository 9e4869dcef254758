import { type HeaderLine, type Input, joinHeader } from './input.ts';

const requestLine = /^([A-Z]+) (\S+)(?: HTTP\/\d(?:\.\d)?)?$/;

export function isRawRequest(text: string): boolean {
  return requestLine.test(text.split(/\r?\n/, 1)[0] ?? '');
}

/** Reads an HTTP request. `scheme` completes its URL. */
export function readRawRequest(text: string, scheme: 'http' | 'https' = 'http'): Input {
  const lines = text.split(/\r?\n/);
  const [, method, target = '/'] = requestLine.exec(lines[0] ?? '') ?? [];
  const headers = readHeaderLines(lines.slice(1));
  const host = joinHeader(headers, 'host');
  const url = /^https?:/i.test(target) ? target : host === null ? undefined : `${scheme}://${host}${target}`;
  const [, body] = /\r?\n\r?\n([\s\S]+)$/.exec(text) ?? [];
  return {
    kind: 'request',
    method,
    // Unchanged if the host is not valid: the server refuses the request by its Host.
    url,
    headers,
    ...(body !== undefined && { body }),
  };
}

/**
 * Header lines up to the first empty line, which a tool may have filled with spaces. The value of a header that continues on
 * further lines has its line breaks.
 */
export function readHeaderLines(lines: readonly string[]): readonly HeaderLine[] {
  const end = lines.findIndex((line) => line.trim() === '');
  const headers: HeaderLine[] = [];
  for (const line of lines.slice(0, end < 0 ? lines.length : end)) {
    const last = headers.at(-1);
    const colon = line.indexOf(':');
    // The other part of a broken token.
    const isPart = /^[\w.-]+$/.test(line) && /^(?:authorization|dpop)$/i.test(last?.[0] ?? '');
    if (last !== undefined && (isPart || /^[ \t]/.test(line))) headers.splice(-1, 1, [last[0], `${last[1]}\n${line}`]);
    else if (colon > 0) headers.push([line.slice(0, colon), line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, '')]);
  }
  return headers;
}
