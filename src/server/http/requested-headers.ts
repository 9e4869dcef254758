import type { ResourceRequest } from '../../core/http/request.ts';
import type { HeaderList } from './exchange.ts';

/** A method, or the name of a header (RFC 9110 §5.6.2). */
export const token = /^[\w!#$%&'*+.^`|~-]{1,2048}$/;

/** Allows the headers that a preflight names (Fetch Standard); no header if they are not a list, or are too long. */
export function allowRequestedHeaders(request: ResourceRequest): HeaderList {
  const names = request.headers.get('access-control-request-headers') ?? '';
  const isList = names.length <= 2048 && names.split(',').every((name) => token.test(name.trim()));
  return isList ? ['access-control-allow-headers', names] : [];
}
