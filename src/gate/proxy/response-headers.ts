import { isTrailer } from './header-names.ts';

const hopByHop: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'te', 'upgrade', 'proxy-authenticate'],
  'proxy-authentication-info',
]);

/** By their lengths first: few others are as long, and need not be put into lower case. */
const hopByHopLengths: ReadonlySet<number> = new Set(Array.from(hopByHop, ({ length }) => length));

/** The headers of an answer for the next hop; `undefined` if its body has a coding that cannot be passed on. */
export function readAnswerHeaders(rawHeaders: readonly string[]): string[] | undefined {
  const headers: string[] = [];
  let named: Set<string> | undefined;
  let isChunked = false;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const value = rawHeaders[i + 1] ?? '';
    const lower = hopByHopLengths.has(name.length) ? name.toLowerCase() : '';
    if (!hopByHop.has(lower)) headers.push(name, value);
    else if (lower === 'connection') {
      for (const option of value.toLowerCase().split(',')) {
        const trimmed = option.trim();
        if (trimmed !== 'keep-alive' && trimmed !== 'close') named = (named ?? new Set()).add(trimmed);
      }
    } else if (lower === 'transfer-encoding') {
      if (isChunked || value.toLowerCase() !== 'chunked') return undefined;
      isChunked = true;
    }
  }
  if (named === undefined && !isChunked) return headers;
  return headers.filter((_, i) => {
    const name = (headers[i - (i % 2)] ?? '').toLowerCase();
    if (name === 'content-length') return !isChunked;
    return named?.has(name) !== true;
  });
}

/** Those trailers that may stand behind a body. */
export function readTrailers(
  rawTrailers: readonly string[],
  may: (name: string) => boolean = isTrailer,
): [string, string][] {
  const trailers: [string, string][] = [];
  for (let i = 0; i < rawTrailers.length; i += 2) {
    const name = rawTrailers[i] ?? '';
    if (may(name)) trailers.push([name, rawTrailers[i + 1] ?? '']);
  }
  return trailers;
}
