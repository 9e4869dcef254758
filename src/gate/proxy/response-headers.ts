import type { HeaderList } from '../../server/http/answer.ts';
import { isTrailer } from './header-names.ts';

const hopByHop: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'te', 'upgrade', 'proxy-authenticate'],
  'proxy-authentication-info',
]);

/** Lengths of these names. Other lengths need no conversion to lower case. */
const hopByHopLengths: ReadonlySet<number> = new Set(Array.from(hopByHop, ({ length }) => length));

/** Reads the response headers for the next hop; `undefined` if the transfer coding cannot be forwarded. */
export function readResponseHeaders(rawHeaders: readonly string[]): string[] | undefined {
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
/** Adds the gate's headers. They replace headers of the same name, except Vary. */
export function mergeHeaders(headers: readonly string[], added: HeaderList, prefersUpstreamCors: boolean): string[] {
  const names = new Set(headers.flatMap((name, i) => (i % 2 === 0 ? [name.toLowerCase()] : [])));
  const keepsCors = prefersUpstreamCors && names.has('access-control-allow-origin');
  const ours: string[] = [];
  for (let i = 0; i < added.length; i += 2) {
    const name = added[i] ?? '';
    if (!(keepsCors && name.startsWith('access-control-'))) ours.push(name, added[i + 1] ?? '');
  }
  const replaced = new Set(ours.flatMap((name, i) => (i % 2 === 0 && name !== 'vary' ? [name.toLowerCase()] : [])));
  const kept = headers.filter((_, i) => !replaced.has((headers[i - (i % 2)] ?? '').toLowerCase()));
  return [...kept, ...ours];
}

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
