import type { Decision } from '../../server/console/wire.ts';

/** Filter of the list. It is part of the URL. */
export interface Filter {
  readonly show: 'all' | 'refused';
  readonly text: string;
  /** Empty: any. */
  readonly reason: string;
}

export function readFilter(query: string): Filter {
  const values = new URLSearchParams(query);
  return {
    show: values.get('show') === 'refused' ? 'refused' : 'all',
    text: values.get('q') ?? '',
    reason: values.get('reason') ?? '',
  };
}

/** Formats a filter as a query; empty without a filter. */
export function formatFilter({ show, text, reason }: Filter): string {
  const values = Object.entries({ show: show === 'all' ? '' : show, q: text, reason }).filter(([, value]) => value);
  return values.length === 0 ? '' : `?${new URLSearchParams(values)}`;
}

export function matchesSearch(decision: Decision, { show, text }: Filter): boolean {
  const { id, requestId = '', method, route, path = '', reason = '' } = decision;
  const searched = [id, requestId, `${method} ${route}`, path, reason].join('\n').toLowerCase();
  return (show === 'all' || reason !== '') && searched.includes(text.trim().toLowerCase());
}
