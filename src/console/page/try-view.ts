import type { ConsoleState, RouteView } from '../../server/console/wire.ts';
import { sendTry } from './fetching.ts';
import { tryTexts } from './texts.ts';
import { TryResultView } from './try-result-view.ts';
import { type TryKind, type TryResult, tryKinds } from './try-wire.ts';
import { html, useState, type View } from './view.ts';

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

type Progress = TryResult | 'none' | 'sending';

export function TryView({ state: { routes, command } }: { readonly state: ConsoleState }): View {
  const usable = routes.filter(({ access }) => access !== 'deny');
  const [id, setId] = useState((usable.find(({ access }) => access === 'token') ?? usable[0])?.id ?? '');
  const route = usable.find((each) => each.id === id);
  const [path, setPath] = useState(makePath(route));
  const [method, setMethod] = useState(firstMethod(route));
  const [kind, setKind] = useState<TryKind>('good');
  const [progress, setProgress] = useState<Progress>('none');

  const chooseRoute = (next: string): void => {
    const chosen = usable.find((each) => each.id === next);
    setId(next);
    setPath(makePath(chosen));
    setMethod(firstMethod(chosen));
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    if (progress === 'sending') return;
    setProgress('sending');
    void sendTry({ kind, method, path, scope: route?.scope ?? '', permissions: route?.permissions ?? [] }).then(
      setProgress,
    );
  };
  const read = (take: (value: string) => void) => (event: Event) =>
    take((event.target as HTMLInputElement | HTMLSelectElement).value); // only these two are in the form

  return html`<div class="split try">
    <form class="list" onSubmit=${submit} aria-labelledby="try-title">
      <h1 id="try-title" tabindex="-1">Try it</h1>
      <label class="field"><span>${command === 'gate' ? 'Rule' : 'Endpoint'}</span>
        <select value=${id} onChange=${read(chooseRoute)}>
          ${usable.map((each) => html`<option value=${each.id} key=${each.id}>${nameRoute(each)}</option>`)}
        </select>
      </label>
      <div class="row">
        <label class="field narrow"><span>Method</span>
          <select value=${method} onChange=${read(setMethod)}>
            ${methods.map((each) => html`<option value=${each} key=${each}>${each}</option>`)}
          </select>
        </label>
        <label class="field"><span>Path</span>
          <input value=${path} onInput=${read(setPath)} pattern="/.*" required spellcheck=${false} autocomplete="off" autocapitalize="off" />
        </label>
      </div>
      <fieldset class="kinds"><legend>Token</legend>
        ${tryKinds.map(
          (each) => html`<label key=${each} class=${kind === each ? 'on' : ''}>
            <input type="radio" name="kind" value=${each} checked=${kind === each} onChange=${() => setKind(each)} />
            <span><strong>${tryTexts[each].title}</strong><span class="soft">${tryTexts[each].text}</span></span>
          </label>`,
        )}
      </fieldset>
      <button type="submit" class="main" aria-disabled=${progress === 'sending'}>
        ${progress === 'sending' ? 'Sending…' : 'Send request'}
      </button>
    </form>
    <section class="pane" aria-label="Result" aria-busy=${progress === 'sending'}>
      ${
        progress === 'none'
          ? html`<p class="hint">Choose a token and send the request. The request, the response and every check appear here.</p>`
          : progress === 'sending'
            ? html`<p class="soft" role="status">Sending…</p>`
            : html`<${TryResultView} result=${progress} />`
      }
    </section>
  </div>`;
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
  return methods.find((method) => route?.methods.includes(method)) ?? 'GET';
}
