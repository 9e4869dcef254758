import type { ConsoleState } from '../../server/console/wire.ts';
import { DecisionList } from './decision-list.ts';
import { fetchState } from './fetching.ts';
import { ForceView } from './force-view.ts';
import { type Line, useLive } from './live.ts';
import { Gate } from './parts.ts';
import { TryView } from './try-view.ts';
import { html, render, useEffect, useState, type View } from './view.ts';

const views = [
  { name: 'decisions', title: 'Decisions' },
  { name: 'try', title: 'Try it' },
  { name: 'force', title: 'In force' },
] as const;

interface Place {
  readonly view: (typeof views)[number]['name'];
  /** Id of a decision. */
  readonly chosen: string | undefined;
}

function Page(): View {
  const live = useLive();
  const place = usePlace();
  const state = useServiceState(`${live.news} ${live.line} ${place.view}`);
  const view = (): View => {
    if (place.view === 'decisions')
      return html`<${DecisionList} live=${live} chosen=${place.chosen} tries=${state?.tries ?? false} />`;
    if (state === undefined) return html`<p class="soft" role="status">The service is asked…</p>`;
    return place.view === 'try' ? html`<${TryView} state=${state} />` : html`<${ForceView} state=${state} />`;
  };
  return html`
    <a class="skip" href="#content" onClick=${skip}>Go to the content</a>
    <header class="top">
      <p class="brand"><${Gate} /> Portcullis ${state !== undefined && html`<span class="tag">${state.command}</span>`}</p>
      <nav aria-label="Views">
        ${views.map(
          ({ name, title }) =>
            html`<a href="#${name}" key=${name} aria-current=${place.view === name ? 'page' : undefined}>${title}</a>`,
        )}
      </nav>
      <${Health} line=${live.line} state=${state} />
    </header>
    <main id="content" tabindex="-1">${view()}</main>
  `;
}

const lines: Readonly<Record<Line, string>> = {
  opening: 'Connecting…',
  open: '',
  waiting: 'Connection lost. It is tried again…',
  over: 'This page is out. Open the newest link.',
};

function Health({ line, state }: { readonly line: Line; readonly state: ConsoleState | undefined }): View {
  const [text, kind] =
    line !== 'open'
      ? [lines[line], line === 'opening' ? 'soft' : 'bad']
      : state?.ready === false
        ? ['Not ready', 'bad']
        : ['Ready', 'good'];
  return html`<p class="health ${kind}" role="status">${text}</p>`;
}

/** The service, asked again when something has happened to it. */
function useServiceState(when: string): ConsoleState | undefined {
  const [state, show] = useState<ConsoleState | undefined>(undefined);
  useEffect(() => {
    let isWanted = true;
    void fetchState().then((next) => {
      if (isWanted && next !== undefined) show(next);
    });
    return () => {
      isWanted = false;
    };
  }, [when]);
  return state;
}

/** Where the reader is: it stands in the address, so that going back works. */
function usePlace(): Place {
  const [place, go] = useState(readPlace);
  useEffect(() => {
    let before = readPlace();
    const follow = (): void => {
      const next = readPlace();
      // Whoever listens to the page is led to what has changed; a decision that is chosen does so when it is there.
      const { chosen } = before;
      const back = chosen === undefined ? undefined : `main a[href="#decision/${CSS.escape(chosen)}"]`;
      if (next.chosen === undefined) setTimeout(focusFirst, 0, ...(back === undefined ? [] : [back]), 'main h1');
      before = next;
      go(next);
    };
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  useEffect(() => {
    const title = views.find(({ name }) => name === place.view)?.title ?? '';
    document.title = `${title} · Portcullis console`;
    return undefined;
  }, [place.view]);
  return place;
}

function readPlace(): Place {
  const [name, id] = location.hash.slice(1).split('/', 2);
  const view = views.find((each) => each.name === name)?.name ?? 'decisions';
  return { view, chosen: name === 'decision' && id !== undefined && id !== '' ? id : undefined };
}

function focusFirst(...selectors: readonly string[]): void {
  for (const selector of selectors) {
    const element = document.querySelector<HTMLElement>(selector);
    element?.focus();
    if (element !== null) return;
  }
}

function skip(event: Event): void {
  // The address names the view.
  event.preventDefault();
  document.getElementById('content')?.focus();
}

const parent = document.getElementById('page');
if (parent !== null) render(html`<${Page} />`, parent);
