import type { ConsoleState } from '../../server/console/wire.ts';
import { ConfigurationView } from './configuration-view.ts';
import { DecisionList } from './decision-list.ts';
import { fetchState } from './fetching.ts';
import { type ConnectionState, useLive } from './live.ts';
import { Logo } from './parts.ts';
import { TryView } from './try-view.ts';
import { html, render, useEffect, useState, type View } from './view.ts';

const views = [
  { name: 'decisions', title: 'Decisions' },
  { name: 'try', title: 'Try it' },
  { name: 'configuration', title: 'Configuration' },
] as const;

interface PageLocation {
  readonly view: (typeof views)[number]['name'];
  readonly chosen: string | undefined;
}

function Page(): View {
  const live = useLive();
  const place = usePageLocation();
  const state = useServiceState(`${live.revision} ${live.connection} ${place.view}`);
  const view = (): View => {
    if (place.view === 'decisions')
      return html`<${DecisionList} live=${live} chosen=${place.chosen} tries=${state?.tries ?? false} />`;
    if (state === undefined) return html`<p class="soft" role="status">Loading…</p>`;
    return place.view === 'try' ? html`<${TryView} state=${state} />` : html`<${ConfigurationView} state=${state} />`;
  };
  return html`
    <a class="skip" href="#content" onClick=${skip}>Skip to content</a>
    <header class="top">
      <p class="brand"><${Logo} /> Portcullis ${state !== undefined && html`<span class="tag">${state.command}</span>`}</p>
      <nav aria-label="Views">
        ${views.map(
          ({ name, title }) =>
            html`<a href="#${name}" key=${name} aria-current=${place.view === name ? 'page' : undefined}>${title}</a>`,
        )}
      </nav>
      <${Health} connection=${live.connection} state=${state} />
    </header>
    <main id="content" tabindex="-1">${view()}</main>
  `;
}

const connectionTexts: Readonly<Record<ConnectionState, string>> = {
  connecting: 'Connecting…',
  open: '',
  reconnecting: 'Connection lost. Reconnecting…',
  closed: 'The service was restarted. Open a new link: dev prints it, or see CONSOLE_KEY_FILE.',
};

function Health({
  connection,
  state,
}: {
  readonly connection: ConnectionState;
  readonly state: ConsoleState | undefined;
}): View {
  const [text, kind] =
    connection !== 'open'
      ? [connectionTexts[connection], connection === 'connecting' ? 'soft' : 'bad']
      : state?.ready === false
        ? ['Not ready', 'bad']
        : ['Ready', 'good'];
  return html`<p class="health ${kind}" role="status">${text}</p>`;
}

function useServiceState(revision: string): ConsoleState | undefined {
  const [state, show] = useState<ConsoleState | undefined>(undefined);
  useEffect(() => {
    let isWanted = true;
    void fetchState().then((next) => {
      if (isWanted && next !== undefined) show(next);
    });
    return () => {
      isWanted = false;
    };
  }, [revision]);
  return state;
}

/** View and selected decision. They are part of the URL, so that the back button works. */
function usePageLocation(): PageLocation {
  const [place, go] = useState(readLocation);
  useEffect(() => {
    let before = readLocation();
    const follow = (): void => {
      const next = readLocation();
      // Screen readers follow the focus. A selected decision takes it once it is loaded.
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

function readLocation(): PageLocation {
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
  // The fragment holds the view.
  event.preventDefault();
  document.getElementById('content')?.focus();
}

const parent = document.getElementById('page');
if (parent !== null) render(html`<${Page} />`, parent);
