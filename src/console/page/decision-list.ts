import type { Decision } from '../../server/console/wire.ts';
import { DecisionView } from './decision-view.ts';
import type { Live } from './live.ts';
import { Empty, Status, Time } from './parts.ts';
import { outcomeTexts } from './texts.ts';
import { html, useEffect, useRef, useState, type View } from './view.ts';

type Filter = 'all' | 'refused';

/** Milliseconds between two announcements to who listens to the page. */
const announceEvery = 5000;

/** Decisions as they happen, and beside them the one that was chosen. */
export function DecisionList({ live, chosen, tries }: ListOptions): View {
  const [filter, setFilter] = useState<Filter>('all');
  const [held, hold] = useState<{ readonly decisions: readonly Decision[]; readonly count: number } | undefined>(
    undefined,
  );
  const all = held?.decisions ?? live.decisions;
  const shown = filter === 'all' ? all : all.filter(({ reason }) => reason !== undefined);
  const waiting = held === undefined ? 0 : live.count - held.count;
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
          aria-pressed=${held !== undefined}
          onClick=${() => hold(held === undefined ? { decisions: live.decisions, count: live.count } : undefined)}
        >
          ${held === undefined ? 'Pause' : `Go on${waiting > 0 ? ` (${format(waiting)} new)` : ''}`}
        </button>
      </div>
      <${Announcer} live=${live} />
      ${
        live.dropped > 0 &&
        html`<p class="notice">${format(live.dropped)} decisions were left out: too many came at once. The metrics count them all.</p>`
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
          ? html`<p class="hint">Choose a decision to see every check of it.</p>`
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
    return html`<${Empty} title="No call was refused"><p>Every one of the last calls passed.</p><//>`;
  }
  return html`<${Empty} title="No calls yet">
    ${
      tries
        ? html`<p>Each call shows here as it is answered. <a href="#try">Try one</a> with a token of the local provider.</p>`
        : html`<p>Each call to the service shows here as it is answered.</p>`
    }
  <//>`;
}

interface NothingOptions {
  readonly filter: Filter;
  readonly tries: boolean;
  readonly hasOthers: boolean;
}

/** Says now and then how many calls there were: each of them would be too much to listen to. */
function Announcer({ live }: { readonly live: Live }): View {
  const [text, say] = useState('');
  const latest = useRef(live);
  latest.current = live;
  useEffect(() => {
    let told = latest.current.count;
    const timer = setInterval(() => {
      const { count } = latest.current;
      if (count > told) say(`${format(count - told)} new ${count - told === 1 ? 'decision' : 'decisions'}`);
      told = count;
    }, announceEvery);
    return () => clearInterval(timer);
  }, []);
  return html`<p class="hidden" role="status">${text}</p>`;
}

function format(count: number): string {
  return count.toLocaleString('en');
}
