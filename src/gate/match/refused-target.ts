import type { ExternalUrl } from '../../http/external-url.ts';
import type { ResourceRequest } from '../../http/request.ts';
import { Refused } from '../../refused.ts';
import { showText } from '../../shown-text.ts';

export interface RefusedTarget {
  readonly host: string;
  readonly path: string;
}

/** Maximum length of each, after escaping. */
const maxLength = 256;
/** A token in a path, such as in a link for a password. */
const token = /eyJ[\w-]{8}[\w.-]*/g;

/** Describes the target of a request without its query. */
export function describeTarget(
  { target, url, headers }: ResourceRequest,
  externalUrl: ExternalUrl | Refused | undefined,
): RefusedTarget {
  const host =
    externalUrl === undefined || externalUrl instanceof Refused
      ? (headers.get('host') ?? '')
      : externalUrl.origin.replace(/^.*\//, '');
  const path = (target ?? readTarget(url)).replace(/[?#].*$/s, '');
  return { host: show(host), path: show(path) };
}

function show(text: string): string {
  const shown = showText(text.slice(0, maxLength * 2).replace(token, '***'), Number.POSITIVE_INFINITY);
  return shown.length > maxLength ? `${shown.slice(0, maxLength - 1)}…` : shown;
}

export function readTarget(url: string): string {
  const path = url.indexOf('/', url.indexOf('//') + 2);
  return path < 0 ? '/' : url.slice(path);
}
