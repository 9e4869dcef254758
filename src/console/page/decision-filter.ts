import type { Decision } from '../../server/console/wire.ts';

/** Filter of the list, which is part of the URL. An empty string filters nothing. */
export type Filter = Readonly<Record<'show' | 'q' | 'reason', string>>;

export function readFilter(query: string): Filter {
  const read = (name: string): string => new URLSearchParams(query).get(name) ?? '';
  return { show: read('show') === 'refused' ? 'refused' : '', q: read('q'), reason: read('reason') };
}

/** Formats a filter as a query; empty without a filter. */
export function formatFilter(filter: Filter): string {
  const query = new URLSearchParams(Object.entries(filter).filter(([, value]) => value)).toString();
  return query && `?${query}`;
}

export function matchesSearch(decision: Decision, { show, q }: Filter): boolean {
  const { id, requestId = '', method, route, path = '', reason = '' } = decision;
  const searched = [id, requestId, `${method} ${route}`, path, reason].join('\n').toLowerCase();
  return (show === '' || reason !== '') && searched.includes(q.trim().toLowerCase());
}
