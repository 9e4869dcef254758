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
  const values = new URLSearchParams({
    ...(show === 'refused' && { show }),
    ...(text !== '' && { q: text }),
    ...(reason !== '' && { reason }),
  });
  return values.size === 0 ? '' : `?${values}`;
}

export function matchesSearch(decision: Decision, { show, text }: Filter): boolean {
  const { id, requestId = '', method, route, path = '', reason = '' } = decision;
  if (show === 'refused' && reason === '') return false;
  const searched = [id, requestId, `${method} ${route}`, path, reason].join('\n').toLowerCase();
  return searched.includes(text.trim().toLowerCase());
}

/** Counts the reasons, the most frequent first. */
export function countReasons(decisions: readonly Decision[]): readonly (readonly [string, number])[] {
  const counts = new Map<string, number>();
  for (const { reason } of decisions) if (reason !== undefined) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts].toSorted(([, one], [, other]) => other - one);
}
