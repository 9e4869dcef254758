import type { ConsoleState } from '../../server/console/wire.ts';
import { ConfigurationView } from './configuration-view.ts';
import { type Filter, formatFilter, readFilter } from './decision-filter.ts';
import { DecisionList, findRow } from './decision-list.ts';
import { useFetched } from './fetching.ts';
import { type Live, useLive } from './live.ts';
import { Code, Logo } from './parts.ts';
import { PasteView } from './paste-view.ts';
import { TryView } from './try-view.ts';
import { html, render, useEffect, useState, type View } from './view.ts';

const views = [
  { name: 'decisions', title: 'Decisions' },
  { name: 'try', title: 'Try it' },
  { name: 'paste', title: 'Paste' },
  { name: 'configuration', title: 'Configuration' },
] as const;

interface PageLocation {
  readonly view: (typeof views)[number]['name'];
  readonly chosen: string | undefined;
  readonly filter: Filter;
}

function Page(): View {
  const live = useLive();
  const { connection } = live;
  const [place, onFilter] = usePageLocation();
  const fetched = useFetched<ConsoleState>('/console/api/state', `${live.revision} ${connection} ${place.view}`);
  const state = typeof fetched === 'string' ? undefined : fetched;
  const tries = state?.tries ?? false;
  const view = (): View => {
    if (place.view !== 'decisions' && state === undefined) return html`<p class="soft" role="status">Loading…</p>`;
    if (place.view === 'decisions' || (place.view === 'try' && !tries))
      return html`<${DecisionList} live=${live} tries=${tries} ...${place} onFilter=${onFilter} />`;
    if (place.view === 'paste') return html`<${PasteView} />`;
    return place.view === 'try' ? html`<${TryView} state=${state} />` : html`<${ConfigurationView} state=${state} />`;
  };
  const [health, kind] = describeHealth(connection, state);
  return html`
    <a class="skip" href="#content" onClick=${skip}>Skip to content</a>
    <header class="top">
      <p class="brand"><${Logo} /> Portcullis ${state !== undefined && html`<span class="tag">${tries ? 'dev' : state.command}</span>`}</p>
      <nav aria-label="Views">
        ${views
          .filter(({ name }) => name !== 'try' || tries)
          .map(
            ({ name, title }) =>
              html`<a href="#${name}" key=${name} aria-current=${place.view === name ? 'page' : undefined}>${title}</a>`,
          )}
      </nav>
      <p class="health ${kind}" role="status">${health}</p>
    </header>
    <main id="content" tabindex="-1"><${Restarted} connection=${connection} state=${state} />${view()}</main>
  `;
}

function describeHealth(connection: Live['connection'], state: ConsoleState | undefined): readonly [string, string] {
  if (connection === 'connecting') return ['Connecting…', 'soft'];
  if (connection !== 'open') return [connection === 'reconnecting' ? 'Reconnecting…' : 'Disconnected', 'bad'];
  return state?.ready === false ? ['Not ready', 'bad'] : ['Ready', 'good'];
}

const lostTexts = {
  reconnecting: ['Connection lost.', 'The page reconnects. If the service was restarted, open a new link:'],
  stopped: [
    'The service has stopped, or was restarted on another port.',
    'The decisions below were made before. The page reconnects. If the service was restarted, open a new link. Its log line "listening" has the new port:',
  ],
  ended: [
    'The session of this page has ended.',
    'The console admits four browsers, each for 12 hours; a fifth replaces the oldest. Open a new link:',
  ],
  closed: [
    'The service was restarted.',
    'The decisions below were made before, and the service no longer has their checks. Open a new link:',
  ],
} as const;

interface RestartedOptions {
  readonly connection: Live['connection'];
  readonly state: ConsoleState | undefined;
}

function Restarted({ connection, state }: RestartedOptions): View | false {
  if (connection === 'open' || connection === 'connecting') return false;
  const [title, advice] = lostTexts[connection];
  const origin = connection === 'stopped' ? `http://${location.hostname}:PORT` : location.origin;
  const command = state && `echo "${origin}/console?key=$(cat '${state.keyFile}')"`;
  return html`<section class="restarted" aria-label="Connection">
    <p role="status"><strong>${title}</strong> ${advice}</p>
    ${
      state === undefined || state.tries
        ? html`<p><code>portcullis dev</code> prints it.</p>`
        : html`<${Code} text=${command} label="Command that prints a new link" />`
    }
  </section>`;
}

/** View, selected decision and filter. They are part of the URL, so that the back button works. */
function usePageLocation(): readonly [PageLocation, (filter: Filter) => void] {
  const [place, go] = useState(readLocation);
  useEffect(() => {
    let before = readLocation();
    const follow = (): void => {
      const next = readLocation();
      const { chosen } = before;
      // Screen readers follow the focus. A selected decision takes it once it is loaded.
      const focus = (): void =>
        ((chosen && findRow(chosen)) || document.querySelector<HTMLElement>('main h1'))?.focus();
      if (next.chosen === undefined) setTimeout(focus, 0);
      before = next;
      go(next);
    };
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  useEffect(() => {
    const title = views.find(({ name }) => name === place.view)?.title ?? '';
    document.title = `${title} · Portcullis console`;
  }, [place.view]);
  const onFilter = (filter: Filter): void => {
    const [path] = location.hash.split('?', 1);
    history.replaceState(undefined, '', `${path || '#decisions'}${formatFilter(filter)}`);
    go(readLocation());
  };
  return [place, onFilter];
}

function readLocation(): PageLocation {
  const [path = '', query = ''] = location.hash.slice(1).split('?', 2);
  const [name, id] = path.split('/', 2);
  const view = views.find((each) => each.name === name)?.name ?? 'decisions';
  return { view, chosen: name === 'decision' && id ? id : undefined, filter: readFilter(query) };
}

function skip(event: Event): void {
  // The fragment holds the view.
  event.preventDefault();
  document.getElementById('content')?.focus();
}

const parent = document.getElementById('page');
if (parent !== null) render(html`<${Page} />`, parent);
