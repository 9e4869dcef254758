import type { Decision } from '../../server/console/wire.ts';
import { countReasons, type Filter, formatFilter, matchesSearch } from './decision-filter.ts';
import { DecisionView } from './decision-view.ts';
import type { Live } from './live.ts';
import { Empty, Status, Time } from './parts.ts';
import { outcomeTexts } from './texts.ts';
import { html, useEffect, useRef, useState, type View } from './view.ts';

/** Interval of announcements for screen readers, in milliseconds. */
const announceEvery = 5000;

export function DecisionList({ live, chosen, tries, filter, onFilter }: ListOptions): View {
  const [paused, pause] = useState<{ readonly decisions: readonly Decision[]; readonly count: number } | undefined>(
    undefined,
  );
  const all = paused?.decisions ?? live.decisions;
  const found = all.filter((each) => matchesSearch(each, filter));
  const shown = filter.reason === '' ? found : found.filter(({ reason }) => reason === filter.reason);
  const query = formatFilter(filter);
  const waiting = paused === undefined ? 0 : live.count - paused.count;
  const counts = new Map(countReasons(found));
  // A filter without results stays visible, so that it can be removed.
  if (filter.reason !== '' && !counts.has(filter.reason)) counts.set(filter.reason, 0);
  useKeys({ shown, query });
  useEffect(() => {
    if (chosen !== undefined)
      document.querySelector(`[data-id="${CSS.escape(chosen)}"]`)?.scrollIntoView({ block: 'nearest' });
    return undefined;
  }, [chosen]);
  const choose = (show: Filter['show'], text: string): View => html`<label>
    <input type="radio" name="filter" checked=${filter.show === show} onChange=${() => onFilter({ ...filter, show })} />
    <span>${text}</span>
  </label>`;
  return html`<div class="split ${chosen === undefined ? '' : 'chosen'}">
    <section class="list" aria-labelledby="list-title">
      <div class="bar">
        <h1 id="list-title" tabindex="-1">Decisions</h1>
        <fieldset class="segments"><legend class="hidden">Show</legend>${choose('all', 'All')}${choose('refused', 'Refused')}</fieldset>
        <button
          type="button"
          class="quiet"
          aria-pressed=${paused !== undefined}
          onClick=${() => pause(paused === undefined ? { decisions: live.decisions, count: live.count } : undefined)}
        >
          ${paused === undefined ? 'Pause' : `Continue${waiting > 0 ? ` (${format(waiting)} new)` : ''}`}
        </button>
      </div>
      <search class="search">
        <label><span class="hidden">Search by id, path or reason</span>
          <input
            type="search"
            placeholder="Search by id, path or reason"
            aria-keyshortcuts="/"
            value=${filter.text}
            onInput=${(event: Event) => onFilter({ ...filter, text: (event.target as HTMLInputElement).value })}
          />
        </label>
        ${
          counts.size > 0 &&
          html`<ul class="counts" aria-label="Reasons">${[...counts].map(([reason, count]) => {
            const isOn = reason === filter.reason;
            return html`<li key=${reason}><button
              type="button"
              class="quiet"
              aria-pressed=${isOn}
              onClick=${() => onFilter({ ...filter, reason: isOn ? '' : reason })}
            >${reason} <strong>${format(count)}</strong></button></li>`;
          })}</ul>`
        }
      </search>
      <${Announcer} live=${live} />
      ${
        live.dropped > 0 &&
        html`<p class="notice">${format(live.dropped)} decisions are missing because too many came at once. The metrics count all of them.</p>`
      }
      ${
        shown.length === 0
          ? html`<${Nothing} tries=${tries} hasOthers=${all.length > 0} />`
          : html`<ol>${shown.map((each) => html`<${Row} key=${each.id} decision=${each} isChosen=${each.id === chosen} query=${query} isOld=${live.connection === 'closed'} />`)}</ol>`
      }
    </section>
    <section class="pane" aria-label="One decision">
      ${
        chosen === undefined
          ? html`<p class="hint">Select a decision to see its checks.</p>`
          : html`<a class="back" href="#decisions${query}">All decisions</a><${DecisionView} id=${chosen} />`
      }
    </section>
  </div>`;
}

interface ListOptions {
  readonly live: Live;
  readonly chosen: string | undefined;
  readonly tries: boolean;
  readonly filter: Filter;
  readonly onFilter: (filter: Filter) => void;
}

interface KeyOptions {
  readonly shown: readonly Decision[];
  readonly query: string;
}

/** Arrows select the next decision, Escape closes it, and a slash begins a search. */
function useKeys(options: KeyOptions): void {
  const latest = useRef(options);
  latest.current = options;
  useEffect(() => {
    const follow = (event: KeyboardEvent): void => {
      const { key, altKey, ctrlKey, metaKey, shiftKey } = event;
      const { shown, query } = latest.current;
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
  }, []);
}

interface RowOptions {
  readonly decision: Decision;
  readonly isChosen: boolean;
  readonly isOld: boolean;
  readonly query: string;
}

function Row({ decision, isChosen, isOld, query }: RowOptions): View {
  const { id, status, outcome, method, route, path, reason, at } = decision;
  return html`<li class=${isOld ? 'old' : ''}>
    <a href="#decision/${id}${query}" data-id=${id} aria-current=${isChosen ? 'true' : undefined}>
      <${Status} status=${status} outcome=${outcome} />
      <span class="what"><span class="call">${method} ${path ?? route}</span>
        <span class="why">${reason === undefined ? outcomeTexts[outcome] : reason}${isOld && ' (before the restart)'}</span></span>
      <${Time} at=${at} />
    </a>
  </li>`;
}

function Nothing({ tries, hasOthers }: NothingOptions): View {
  if (hasOthers) {
    return html`<${Empty} title="No decision matches"><p>None of the recent requests matches. <a href="#decisions">Show all</a></p><//>`;
  }
  return html`<${Empty} title="No requests yet">
    ${
      tries
        ? html`<p>Requests appear here. <a href="#try">Try one</a> with a token of the local provider.</p>`
        : html`<p>Requests to the service appear here.</p>`
    }
  <//>`;
}

interface NothingOptions {
  readonly tries: boolean;
  readonly hasOthers: boolean;
}

/** Announces the number of new decisions at intervals. A screen reader could not follow each of them. */
function Announcer({ live }: { readonly live: Live }): View {
  const [text, announce] = useState('');
  const latest = useRef(live);
  latest.current = live;
  useEffect(() => {
    let announced = latest.current.count;
    const timer = setInterval(() => {
      const { count } = latest.current;
      if (count > announced)
        announce(`${format(count - announced)} new ${count - announced === 1 ? 'decision' : 'decisions'}`);
      announced = count;
    }, announceEvery);
    return () => clearInterval(timer);
  }, []);
  return html`<p class="hidden" role="status">${text}</p>`;
}

function format(count: number): string {
  return count.toLocaleString('en');
}
