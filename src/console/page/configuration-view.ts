import type { ConsoleState, KeysView, Note, RouteView } from '../../server/console/wire.ts';
import { Empty, Time } from './parts.ts';
import { html, type View } from './view.ts';

export function ConfigurationView({ state }: { readonly state: ConsoleState }): View {
  const { command, routes, keys, settings, notes, checks, version } = state;
  const facts = [
    ...settings,
    ...Object.entries(checks).map(([name, value]) => [`Check: ${name}`, value] as const),
    ['Version', version] as const,
  ];
  return html`<div class="stack">
    <h1 tabindex="-1">Configuration</h1>
    <${Section} title=${command === 'gate' ? 'Rules' : 'Endpoints'}>
      ${list('routes', routes.map(showRoute), html`<${Empty} title="No rules">The rules are not loaded yet.<//>`)}
    <//>
    <${Section} title="Keys">${list('cards', keys.map(showKeys), html`<p class="soft">No issuer publishes keys by discovery.</p>`)}<//>
    <${Section} title="Reloads and events">
      ${command === 'gate' && html`<p>${describeReload(notes)}</p>`}
      ${list('notes', notes.map(showNote).toReversed(), html`<p class="soft">No events yet.</p>`)}
    <//>
    <${Section} title="Settings">
      <dl class="facts">${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd><code class="plain">${value}</code></dd></div>`)}</dl>
    <//>
  </div>`;
}

/** A list, or what is shown without its items. */
function list(name: string, items: readonly View[], otherwise: View): View {
  return items.length > 0 ? html`<ul class=${name}>${items}</ul>` : otherwise;
}

function Section({ title, children }: { readonly title: string; readonly children: View }): View {
  return html`<section aria-label=${title}><h2>${title}</h2>${children}</section>`;
}

const accessTexts: Readonly<Record<RouteView['access'], string>> = {
  open: 'open to all',
  token: 'needs a token',
  optional: 'token is optional',
  deny: 'closed to all',
};

function showRoute({ id, kind, path, hosts, methods, access, mode, needs }: RouteView): View {
  return html`<li>
    <div>
      ${kind === 'rule' && html`<span class="name">${id}</span>`}
      <code class="plain">${[methods.join(', '), hosts.join(', ') + path].filter(Boolean).join(' ')}</code>
    </div>
    <div class="tags">
      <span class="tag ${access}">${accessTexts[access]}</span>
      ${mode === 'report' && html`<span class="tag likely">report mode</span>`}
      ${needs.map((need) => html`<span class="tag">${need}</span>`)}
    </div>
  </li>`;
}

function showKeys({ issuer, usable, ids, ageSeconds, problem }: KeysView): View {
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

function showNote({ at, level, event, text }: Note): View {
  return html`<li class=${level}>
    <${Time} at=${at} /> <span class="tag ${level}">${level}</span>
    <span><strong>${event.replaceAll('_', ' ')}</strong> <span class="soft">${text}</span></span>
  </li>`;
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
