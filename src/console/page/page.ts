import type { ConsoleState } from '../../server/console/wire.ts';
import { ConfigurationView } from './configuration-view.ts';
import { type Filter, formatFilter, readFilter } from './decision-filter.ts';
import { DecisionList, findRow } from './decision-list.ts';
import { useFetched } from './fetching.ts';
import { type Live, useLive } from './live.ts';
import { Code, Logo } from './parts.ts';
import { PasteView } from './paste-view.ts';
import { html, render, useEffect, useState, type View } from './view.ts';

/** Titles of the views, by their names in the URL. */
const titles = { decisions: 'Decisions', try: 'Try it', paste: 'Paste', configuration: 'Configuration' } as const;
type ViewName = keyof typeof titles;
const names = Object.keys(titles) as readonly ViewName[]; // its keys

export type TryViewOf = (options: { readonly state: ConsoleState }) => View;

/** Shows the page. `dev` has a view to try requests. */
export function showPage(TryView?: TryViewOf): void {
  const parent = document.getElementById('page');
  if (parent !== null) render(html`<${Page} TryView=${TryView} />`, parent);
}

function Page({ TryView }: { readonly TryView: TryViewOf | undefined }): View {
  const live = useLive();
  const { connection } = live;
  const [place, onFilter] = usePageLocation();
  const fetched = useFetched<ConsoleState>('/console/api/state', `${live.revision} ${connection} ${place.view}`);
  const state = typeof fetched === 'string' ? undefined : fetched;
  const Chosen = { decisions: undefined, try: TryView, paste: PasteView, configuration: ConfigurationView }[place.view];
  const view = (): View => {
    if (Chosen === undefined)
      return html`<${DecisionList} live=${live} tries=${TryView !== undefined} ...${place} onFilter=${onFilter} />`;
    return state === undefined
      ? html`<p class="soft" role="status">Loading…</p>`
      : html`<${Chosen} key=${place.view} state=${state} />`;
  };
  const [health, kind] = describeHealth(connection, state);
  const shown = names.filter((name) => name !== 'try' || TryView !== undefined);
  return html`
    <a class="skip" href="#content" onClick=${skip}>Skip to content</a>
    <header class="top">
      <p class="brand"><${Logo} /> Portcullis ${state !== undefined && html`<span class="tag">${TryView === undefined ? state.command : 'dev'}</span>`}</p>
      <nav aria-label="Views">
        ${shown.map((name) => html`<a href="#${name}" key=${name} aria-current=${place.view === name ? 'page' : undefined}>${titles[name]}</a>`)}
      </nav>
      <p class="health ${kind}" role="status">${health}</p>
    </header>
    <main id="content" tabindex="-1"><${Restarted} connection=${connection} state=${state} isDev=${TryView !== undefined} />${view()}</main>
  `;
}

function describeHealth(connection: Live['connection'], state: ConsoleState | undefined): readonly [string, string] {
  if (connection === 'connecting') return ['Connecting…', 'soft'];
  if (connection !== 'open') return [connection === 'reconnecting' ? 'Reconnecting…' : 'Disconnected', 'bad'];
  return state?.ready === false ? ['Not ready', 'bad'] : ['Ready', 'good'];
}

const lostTexts = {
  reconnecting: ['Connection lost.', 'The page reconnects. If the service was restarted, open the new link:'],
  stopped: [
    'The service has stopped, or was restarted on another port.',
    'The decisions below were made before. The page reconnects. If the service was restarted, open the new link. Its log line "listening" has the new port:',
  ],
  closed: [
    'The service was restarted, or this page was opened 12 hours ago.',
    'The decisions below were made before, and a restarted service no longer has their checks. Open the new link:',
  ],
} as const;

type RestartedOptions = Readonly<{ connection: Live['connection']; state: ConsoleState | undefined; isDev: boolean }>;

function Restarted({ connection, state, isDev }: RestartedOptions): View | false {
  if (connection === 'open' || connection === 'connecting') return false;
  const [title, advice] = lostTexts[connection];
  const origin = connection === 'stopped' ? `http://${location.hostname}:PORT` : location.origin;
  const command = state && `echo "${origin}/console?key=$(cat '${state.keyFile}')"`;
  return html`<section class="restarted" aria-label="Connection">
    <p role="status"><strong>${title}</strong> ${advice}</p>
    ${
      command === undefined || isDev
        ? html`<p><code>portcullis dev</code> prints it.</p>`
        : html`<${Code} text=${command} label="Command that prints the new link" />`
    }
  </section>`;
}

/** View, selected decision and filter. They are part of the URL, so that the back button works. */
function usePageLocation() {
  const [place, go] = useState(readLocation);
  useEffect(() => {
    let before = readLocation();
    const follow = (): void => {
      const next = readLocation();
      const { chosen } = before;
      // Screen readers follow the focus. A selected decision takes it once it is loaded.
      const focus = (): void => {
        const target = (chosen && findRow(chosen)) || document.querySelector<HTMLElement>('main h1');
        if (target) target.focus();
        else if (before === next) setTimeout(focus, 50); // the view is loading
      };
      if (next.chosen === undefined) setTimeout(focus, 0);
      before = next;
      go(next);
    };
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  useEffect(() => {
    document.title = `${titles[place.view]} · Portcullis console`;
  }, [place.view]);
  const onFilter = (filter: Filter): void => {
    const [path] = location.hash.split('?', 1);
    history.replaceState(undefined, '', `${path || '#decisions'}${formatFilter(filter)}`);
    go(readLocation());
  };
  return [place, onFilter] as const;
}

function readLocation() {
  const [path = '', query = ''] = location.hash.slice(1).split('?', 2);
  const [name, id] = path.split('/', 2);
  const view = names.find((each) => each === name) ?? 'decisions';
  return { view, chosen: name === 'decision' && id ? id : undefined, filter: readFilter(query) };
}

function skip(event: Event): void {
  // The fragment holds the view.
  event.preventDefault();
  document.getElementById('content')?.focus();
}
