import type { ConsoleState, KeysView, Note, RouteView } from '../../server/console/wire.ts';
import { Empty, Time } from './parts.ts';
import { html, type View } from './view.ts';

export function ConfigurationView({ state }: { readonly state: ConsoleState }): View {
  const { command, routes, keys, settings, notes, checks, workers, version } = state;
  return html`<div class="stack">
    <h1 tabindex="-1">Configuration</h1>
    <section aria-labelledby="routes-title">
      <h2 id="routes-title">${command === 'gate' ? 'Rules' : 'Endpoints'}</h2>
      <${Routes} routes=${routes} />
    </section>
    <section aria-labelledby="keys-title">
      <h2 id="keys-title">Keys</h2>
      ${
        keys.length === 0
          ? html`<p class="soft">No issuer publishes keys by discovery.</p>`
          : html`<ul class="cards">${keys.map((each) => html`<${Keys} key=${each.issuer} keys=${each} />`)}</ul>`
      }
    </section>
    <section aria-labelledby="events-title">
      <h2 id="events-title">Reloads and events</h2>
      ${command === 'gate' && html`<p>${describeReload(notes)}</p>`}
      <${Notes} notes=${notes} />
    </section>
    <section aria-labelledby="settings-title">
      <h2 id="settings-title">Settings</h2>
      <dl class="facts">
        ${settings.map(([name, value]) => html`<div><dt>${name}</dt><dd><code class="plain">${value}</code></dd></div>`)}
        ${Object.entries(checks).map(([name, value]) => html`<div><dt>Check: ${name}</dt><dd>${value}</dd></div>`)}
        <div><dt>Processes</dt><dd>${workers}</dd></div>
        <div><dt>Version</dt><dd>${version}</dd></div>
      </dl>
    </section>
  </div>`;
}

const accessTexts: Readonly<Record<RouteView['access'], string>> = {
  open: 'open to all',
  token: 'needs a token',
  optional: 'token is optional',
  deny: 'closed to all',
};

function Routes({ routes }: { readonly routes: readonly RouteView[] }): View {
  if (routes.length === 0) return html`<${Empty} title="No rules"><p>The rules are not loaded yet.</p><//>`;
  return html`<ul class="routes">
    ${routes.map(
      ({ id, kind, path, hosts, methods, access, mode, needs }) => html`<li key=${id}>
        <div>
          ${kind === 'rule' && html`<span class="name">${id}</span>`}
          <code class="plain">${[methods.join(', '), hosts.join(', ') + path].filter(Boolean).join(' ')}</code>
        </div>
        <div class="tags">
          <span class="tag ${access}">${accessTexts[access]}</span>
          ${mode === 'report' && html`<span class="tag likely">report mode</span>`}
          ${needs.map((need) => html`<span class="tag">${need}</span>`)}
        </div>
      </li>`,
    )}
  </ul>`;
}

function Keys({ keys }: { readonly keys: KeysView }): View {
  const { issuer, usable, ids, ageSeconds, problem } = keys;
  return html`<li>
    <p><code class="plain">${issuer}</code></p>
    <p>
      <span class="tag ${usable ? 'open' : 'deny'}">${usable ? 'usable' : 'no usable keys'}</span>
      ${ageSeconds !== undefined && html` <span class="soft">fetched ${describeAge(ageSeconds)} ago</span>`}
    </p>
    ${ids.length > 0 && html`<p class="soft">Key ids: ${ids.map((id) => html`<code class="plain">${id}</code> `)}</p>`}
    ${problem !== undefined && html`<p class="problem">The last fetch failed. ${problem}</p>`}
  </li>`;
}

function Notes({ notes }: { readonly notes: readonly Note[] }): View {
  if (notes.length === 0) return html`<p class="soft">No events yet.</p>`;
  return html`<ol class="notes">
    ${notes.toReversed().map(
      ({ at, level, event, text }) => html`<li class=${level}>
        <${Time} at=${at} /> <span class="tag ${level}">${level}</span>
        <span><strong>${event.replaceAll('_', ' ')}</strong> <span class="soft">${text}</span></span>
      </li>`,
    )}
  </ol>`;
}

function describeReload(notes: readonly Note[]): string {
  const last = notes.findLast(({ event }) => event === 'rules_loaded' || event === 'rules_kept');
  if (last?.event === 'rules_kept') return 'The last change of the rules was refused. The previous rules stay active.';
  return 'The rules of the file are active. A change takes effect within 5 seconds.';
}

function describeAge(seconds: number): string {
  if (seconds < 90) return `${seconds} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}
