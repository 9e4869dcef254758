import { Explained } from '../../console/page/decision-view.ts';
import { post, useFetched } from '../../console/page/fetching.ts';
import { FormView } from '../../console/page/form-view.ts';
import { Code, Status } from '../../console/page/parts.ts';
import { html, useState, type View } from '../../console/page/view.ts';
import type { ConsoleState, DecisionDetail, RouteView } from '../../server/console/wire.ts';
import type { Tried, TriedRequest, TryKind, TryOptions } from '../tries/try-kinds.ts';
import { tryKinds, tryMethods } from '../tries/try-kinds.ts';

export function TryView({ state: { routes, command } }: { readonly state: ConsoleState }): View {
  const usable = routes.filter(({ access }) => access !== 'deny');
  const [route, setRoute] = useState(usable.find(({ access }) => access === 'token') ?? usable[0]);
  const [path, setPath] = useState(makePath(route));
  const [method, setMethod] = useState(firstMethod(route));
  const [kind, setKind] = useState<TryKind>('good');
  const chooseRoute = (id: string): void => {
    const chosen = usable.find((each) => each.id === id);
    setRoute(chosen);
    setPath(makePath(chosen));
    setMethod(firstMethod(chosen));
  };
  const chooseKind = (chosen: TryKind): void => {
    setKind(chosen);
    const hasNeeds = (each: RouteView | undefined) => each?.scope || each?.permissions.length;
    const scoped = usable.find(hasNeeds);
    if (chosen === 'missing_scope' && !hasNeeds(route) && scoped !== undefined) chooseRoute(scoped.id);
  };
  const send = () => {
    const options: TryOptions = {
      ...{ kind, method, path },
      ...{ scope: route?.scope ?? '', permissions: route?.permissions ?? [] },
    };
    return post<Tried>('/console/api/try', 'application/json', JSON.stringify(options));
  };
  const read = (take: (value: string) => void) => (event: Event) =>
    take((event.target as HTMLInputElement | HTMLSelectElement).value); // only these two are in the form
  return html`<${FormView}
    title="Try it"
    button="Send request"
    busyText="Sending…"
    hint="Choose a token and send the request. The request, the response and every check appear here."
    send=${send}
    show=${(tried: Tried) => html`<${TriedView} ...${tried} />`}
  >
    <label class="field"><span>${command === 'gate' ? 'Rule' : 'Endpoint'}</span>
      <select value=${route?.id} onChange=${read(chooseRoute)}>
        ${usable.map((each) => html`<option value=${each.id} key=${each.id}>${nameRoute(each)}</option>`)}
      </select>
    </label>
    <div class="row">
      <label class="field narrow"><span>Method</span>
        <select value=${method} onChange=${read(setMethod)}>
          ${tryMethods.map((each) => html`<option value=${each} key=${each}>${each}</option>`)}
        </select>
      </label>
      <label class="field"><span>Path</span>
        <input value=${path} onInput=${read(setPath)} pattern="/.*" required spellcheck=${false} autocomplete="off" autocapitalize="off" />
      </label>
    </div>
    <fieldset class="kinds"><legend>Token</legend>
      ${Object.entries(tryKinds).map(
        ([each, { title, text }]) => html`<label key=${each} class=${kind === each ? 'on' : ''}>
          <input type="radio" name="kind" value=${each} checked=${kind === each} onChange=${() => chooseKind(each as TryKind)} />
          <span><strong>${title}</strong><span class="soft">${text}</span></span>
        </label>`,
      )}
    </fieldset>
  <//>`;
}

function nameRoute({ kind, id, path, access, needs }: RouteView): string {
  const needed = access === 'open' ? 'open' : needs.join(', ') || 'any valid token';
  return `${kind === 'rule' ? `${id}: ` : ''}${path} (${needed})`;
}

function makePath(route: RouteView | undefined): string {
  const path = (route?.path ?? '/').replace(/\/\*\*$/, '/').replaceAll('*', 'x');
  return path === '' ? '/' : path;
}

function firstMethod(route: RouteView | undefined): string {
  return tryMethods.find((method) => route?.methods.includes(method)) ?? 'GET';
}

function TriedView({ requests, command, remark }: Tried): View {
  return html`<div class="tried">
    <h2 class="hidden" tabindex="-1">Status ${requests.map(({ status }) => status).join(', then ')}</h2>
    ${remark !== '' && html`<p class="notice">${remark}</p>`}
    ${requests.map((request, index) => {
      const ordinal = requests.length === 1 ? undefined : ['First', 'Second', 'Third'][index];
      const name = ordinal === undefined ? 'Request' : `${ordinal} request`;
      const isLast = index === requests.length - 1;
      return html`<${Exchange} key=${request.requestId} request=${request} name=${name} isLast=${isLast} />`;
    })}
    <h3>Repeat in a terminal</h3>
    <${Code} text=${command} label="Command that repeats it with a new token" />
  </div>`;
}

type ExchangeOptions = Readonly<{ request: TriedRequest; name: string; isLast: boolean }>;

function Exchange({ request, name, isLast }: ExchangeOptions): View {
  const { sent, status, requestId } = request;
  return html`<article class="detail">
    <header><h2><${Status} status=${status} outcome=${status < 400 ? 'allowed' : 'refused'} /> ${name}</h2></header>
    <pre tabindex="0" role="region" aria-label="${name}; token and proof are shortened"><code>${sent}</code></pre>
    <details open=${isLast}>
      <summary>Response</summary>
      <pre tabindex="0" role="region" aria-label="Response to ${name.toLowerCase()}"><code>${formatResponse(request)}</code></pre>
    </details>
    <details open=${isLast}>
      <summary>Checks</summary>
      <${RequestChecks} id=${requestId} />
    </details>
  </article>`;
}

function RequestChecks({ id }: { readonly id: string }): View {
  const fetched = useFetched<DecisionDetail>(`/console/api/decisions/${id}`);
  if (fetched === 'loading') return html`<p class="soft" role="status">Loading…</p>`;
  if (fetched === 'missing')
    return html`<p class="soft">Too many requests arrived at once: the service has no decision for this one.</p>`;
  return html`<${Explained} detail=${fetched} />`;
}

/** Headers without a relation to the decision. */
const hiddenHeaders = new Set(['connection', 'keep-alive', 'date', 'content-length', 'transfer-encoding', 'vary']);

function formatResponse({ status, headers, body }: TriedRequest): string {
  const lines = headers.filter(([name]) => !hiddenHeaders.has(name)).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP ${status}`, ...lines, ...(body === '' ? [] : ['', indent(body)])].join('\n');
}

function indent(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), undefined, 2);
  } catch {
    return body;
  }
}
