import type { ResourceRequest } from '../core/http/request.ts';
import { showText } from '../core/shown-text.ts';
import type { Explanation } from './explanation.ts';
import { preflightOriginOf, type SettingLabels } from './facts.ts';

const unserved = {
  400: 'The service responds with 400, because the target of the request is not a path. Correct the URL.',
  404: 'The service responds with 404, because it has no such path. Correct the path.',
  417: 'The service responds with 417, because Expect is not 100-continue. Remove the header.',
  431: 'The service responds with 431, because the headers have more than 32 KiB. Send fewer of them, such as cookies.',
  405: 'The service responds with 405, because it serves GET and HEAD only. Correct the method.',
} as const;

/** Describes why the service does not serve a request, and the fix. */
export function describeUnserved(
  status: keyof typeof unserved,
  request: ResourceRequest,
  { cors }: SettingLabels,
): string {
  const origin = status === 405 ? preflightOriginOf(request) : null;
  if (origin === null || cors === undefined) return unserved[status];
  return `The service responds with 405 to this preflight, because no origin is allowed. Set ${cors.set(showText(origin))}.`;
}

/** Explains a request that the service does not serve. The checks of its token follow, as on a route that any valid token opens. */
export function explainUnserved(
  status: keyof typeof unserved,
  { method, url }: ResourceRequest,
  { reason: _, status: __, ...rest }: Explanation,
  fix: string,
): Explanation {
  const seen = showText(`${method} ${new URL(url).pathname}`);
  const check = { id: 'route', group: 'route', verdict: 'fail', seen, fix } as const;
  return { ...rest, verdict: 'refused', status, checks: [check, ...rest.checks] };
}
