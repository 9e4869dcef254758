import type { Decision } from '../../server/console/wire.ts';
import { DecisionView } from './decision-view.ts';
import type { Live } from './live.ts';
import { Empty, Status, Time } from './parts.ts';
import { outcomeTexts } from './texts.ts';
import { html, useEffect, useRef, useState, type View } from './view.ts';

type Filter = 'all' | 'refused';

/** Interval of announcements for screen readers, in milliseconds. */
const announceEvery = 5000;

export function DecisionList({ live, chosen, tries }: ListOptions): View {
  const [filter, setFilter] = useState<Filter>('all');
  const [paused, pause] = useState<{ readonly decisions: readonly Decision[]; readonly count: number } | undefined>(
    undefined,
  );
  const all = paused?.decisions ?? live.decisions;
  const shown = filter === 'all' ? all : all.filter(({ reason }) => reason !== undefined);
  const waiting = paused === undefined ? 0 : live.count - paused.count;
  const choose = (value: Filter, text: string): View => html`<label>
    <input type="radio" name="filter" checked=${filter === value} onChange=${() => setFilter(value)} />
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
      <${Announcer} live=${live} />
      ${
        live.dropped > 0 &&
        html`<p class="notice">${format(live.dropped)} decisions are missing because too many came at once. The metrics count all of them.</p>`
      }
      ${
        shown.length === 0
          ? html`<${Nothing} filter=${filter} tries=${tries} hasOthers=${all.length > 0} />`
          : html`<ol>${shown.map((each) => html`<${Row} key=${each.id} decision=${each} isChosen=${each.id === chosen} />`)}</ol>`
      }
    </section>
    <section class="pane" aria-label="One decision">
      ${
        chosen === undefined
          ? html`<p class="hint">Select a decision to see its checks.</p>`
          : html`<a class="back" href="#decisions">All decisions</a><${DecisionView} id=${chosen} />`
      }
    </section>
  </div>`;
}

interface ListOptions {
  readonly live: Live;
  readonly chosen: string | undefined;
  readonly tries: boolean;
}

function Row({ decision, isChosen }: { readonly decision: Decision; readonly isChosen: boolean }): View {
  const { id, status, outcome, method, route, reason, at } = decision;
  return html`<li>
    <a href="#decision/${id}" aria-current=${isChosen ? 'true' : undefined}>
      <${Status} status=${status} outcome=${outcome} />
      <span class="what"><span class="call">${method} ${route}</span>
        <span class="why">${reason === undefined ? outcomeTexts[outcome] : reason}</span></span>
      <${Time} at=${at} />
    </a>
  </li>`;
}

function Nothing({ filter, tries, hasOthers }: NothingOptions): View {
  if (hasOthers && filter === 'refused') {
    return html`<${Empty} title="No request was refused"><p>All recent requests were admitted.</p><//>`;
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
  readonly filter: Filter;
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
