import type { Decision } from '../../server/console/wire.ts';
import { type Filter, formatFilter, matchesSearch } from './decision-filter.ts';
import { DecisionView } from './decision-view.ts';
import type { Live } from './live.ts';
import { Empty, outcomeTexts, Status, Time } from './parts.ts';
import { html, useEffect, useRef, useState, type View } from './view.ts';

/** Marks of decisions that the service no longer has. */
const ages: Readonly<Partial<Record<Live['connection'], string>>> = {
  closed: 'before the restart',
  stopped: 'before the service stopped',
};

/** Interval of announcements for screen readers, in milliseconds. */
const announceEvery = 5000;

export interface ListOptions {
  readonly live: Live;
  readonly chosen: string | undefined;
  readonly tries: boolean;
  readonly filter: Filter;
  readonly onFilter: (filter: Filter) => void;
}

export function DecisionList({ live, chosen, tries, filter, onFilter }: ListOptions): View {
  const [paused, pause] = useState<Live | undefined>(undefined);
  const { decisions, count } = paused ?? live;
  const waiting = live.count - count;
  const found = decisions.filter((each) => matchesSearch(each, filter));
  const shown = filter.reason === '' ? found : found.filter(({ reason }) => reason === filter.reason);
  const query = formatFilter(filter);
  // It is open until a decision is selected.
  const newest = shown.find(({ reason }) => reason !== undefined);
  useKeys(shown, query);
  useEffect(() => {
    if (chosen !== undefined) findRow(chosen)?.scrollIntoView({ block: 'nearest' });
  }, [chosen]);
  const choose = (show: string, text: string): View => html`<label>
    <input type="radio" name="filter" checked=${filter.show === show} onChange=${() => onFilter({ ...filter, show })} />
    <span>${text}</span>
  </label>`;
  return html`<div class="split ${chosen === undefined ? '' : 'chosen'}">
    <section class="list" aria-labelledby="list-title">
      <div class="bar">
        <h1 id="list-title" tabindex="-1">Decisions</h1>
        <fieldset class="segments"><legend class="hidden">Show</legend>${choose('', 'All')}${choose('refused', 'Refused')}</fieldset>
        <button type="button" class="quiet" aria-pressed=${paused !== undefined} onClick=${() => pause(paused === undefined ? live : undefined)}>
          ${paused === undefined ? 'Pause' : `Continue${waiting > 0 ? ` (${format(waiting)} new)` : ''}`}
        </button>
      </div>
      <search class="search">
        <label><span class="hidden">Search by id, path or reason</span>
          <input type="search" placeholder="Search by id, path or reason" aria-keyshortcuts="/" value=${filter.q}
            onInput=${(event: Event) => onFilter({ ...filter, q: (event.target as HTMLInputElement).value })} />
        </label>
        <${Reasons} decisions=${found} chosen=${filter.reason} onChoose=${(reason: string) => onFilter({ ...filter, reason })} />
      </search>
      <${Announcer} count=${live.count} />
      ${live.dropped > 0 && html`<p class="notice">${format(live.dropped)} decisions are missing because too many came at once. The metrics count all of them.</p>`}
      ${
        shown.length === 0
          ? html`<${Nothing} tries=${tries} hasOthers=${decisions.length > 0} />`
          : html`<ol>${shown.map((each) => html`<${Row} key=${each.id} decision=${each} isChosen=${each.id === chosen} query=${query} age=${ages[live.connection]} />`)}</ol>`
      }
    </section>
    <section class="pane" aria-label="One decision">
      ${
        chosen === undefined
          ? newest === undefined
            ? html`<p class="hint">Select a decision to see its checks.</p>`
            : html`<${DecisionView} id=${newest.id} keepsFocus />`
          : html`<a class="back" href="#decisions${query}">All decisions</a><${DecisionView} id=${chosen} />`
      }
    </section>
  </div>`;
}

export function findRow(id: string): HTMLElement | null {
  return document.querySelector(`main a[data-id="${CSS.escape(id)}"]`);
}

/** Arrows select the next decision, Escape closes it, and a slash begins a search. */
function useKeys(shown: readonly Decision[], query: string): void {
  useEffect(() => {
    const follow = (event: KeyboardEvent): void => {
      const { key, altKey, ctrlKey, metaKey, shiftKey } = event;
      // Keys may be faster than the page.
      const [, chosen] = /^#decision\/([^?]+)/.exec(location.hash) ?? [];
      const isInField = document.activeElement?.matches('input, select, textarea, pre') === true;
      if (altKey || ctrlKey || metaKey || isInField) return;
      if (key === '/') {
        event.preventDefault();
        document.querySelector<HTMLElement>('input[type=search]')?.focus();
      }
      if (key === 'Escape' && chosen !== undefined) location.hash = `decisions${query}`;
      if (shiftKey || (key !== 'ArrowDown' && key !== 'ArrowUp')) return;
      const from = chosen ?? (document.activeElement as HTMLElement | null)?.dataset['id']; // only links of the list have it
      const at = shown.findIndex(({ id }) => id === from);
      const next = shown[at === -1 ? 0 : at + (key === 'ArrowDown' ? 1 : -1)];
      event.preventDefault();
      // The back button skips the decisions in between.
      if (next !== undefined) location.replace(`#decision/${next.id}${query}`);
    };
    addEventListener('keydown', follow);
    return () => removeEventListener('keydown', follow);
  });
}

type ReasonsOptions = Readonly<{ decisions: readonly Decision[]; chosen: string; onChoose: (reason: string) => void }>;

/** Number of decisions for each reason, the most frequent first. */
function Reasons({ decisions, chosen, onChoose }: ReasonsOptions): View | false {
  const counts = new Map<string, number>();
  for (const { reason } of decisions) if (reason !== undefined) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const sorted = [...counts].toSorted(([, one], [, other]) => other - one);
  // A filter without results stays visible, so that it can be removed.
  if (chosen !== '' && !counts.has(chosen)) sorted.push([chosen, 0]);
  if (sorted.length === 0) return false;
  const button = ([reason, count]: readonly [string, number]): View => html`<li key=${reason}>
    <button type="button" class="quiet" aria-pressed=${reason === chosen} onClick=${() => onChoose(reason === chosen ? '' : reason)}>${reason} <strong>${format(count)}</strong></button>
  </li>`;
  return html`<ul class="counts" aria-label="Reasons">${sorted.map(button)}</ul>`;
}

type RowOptions = Readonly<{ decision: Decision; isChosen: boolean; age: string | undefined; query: string }>;

function Row({ decision, isChosen, age, query }: RowOptions): View {
  const { id, status, outcome, method, route, path, reason, at } = decision;
  return html`<li class=${age && 'old'}>
    <a href="#decision/${id}${query}" data-id=${id} aria-current=${isChosen ? 'true' : undefined}>
      <${Status} status=${status} outcome=${outcome} />
      <span class="what"><span class="call">${method} ${path ?? route}</span>
        <span class="why">${reason ?? outcomeTexts[outcome]}${age && ` (${age})`}</span></span>
      <${Time} at=${at} />
    </a>
  </li>`;
}

function Nothing({ tries, hasOthers }: { readonly tries: boolean; readonly hasOthers: boolean }): View {
  if (hasOthers)
    return html`<${Empty} title="No decision matches">None of the recent requests matches. <a href="#decisions">Show all</a><//>`;
  const advice = html`Requests appear here. <a href="#try">Try one</a> with a token of the local provider.`;
  return html`<${Empty} title="No requests yet">${tries ? advice : 'Requests to the service appear here.'}<//>`;
}

/** Announces the number of new decisions at intervals. A screen reader could not follow each of them. */
function Announcer({ count }: { readonly count: number }): View {
  const latest = useRef(count);
  latest.current = count;
  const [[from, to], announce] = useState([count, count] as const);
  useEffect(() => {
    const timer = setInterval(() => announce(([, before]) => [before, latest.current]), announceEvery);
    return () => clearInterval(timer);
  }, []);
  return html`<p class="hidden" role="status">${to > from && `${format(to - from)} new decision${to - from === 1 ? '' : 's'}`}</p>`;
}

function format(count: number): string {
  return count.toLocaleString('en');
}
