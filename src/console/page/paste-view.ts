import type { PastedRequest, PasteResult } from '../../server/console/wire.ts';
import { Explained } from './decision-view.ts';
import { post } from './fetching.ts';
import { FormView } from './form-view.ts';
import { html, type View } from './view.ts';

type Pasted = Extract<PasteResult, { requests: unknown }>;

const verdictTitles = { admitted: 'Admitted', refused: 'Refused', undecided: 'Undecided' } as const;

export function PasteView(): View {
  return html`<${FormView}
    title="Paste"
    button="Explain"
    busyText="Explaining…"
    hint="Every check of the token or request appears here."
    send=${(form: HTMLFormElement) => {
      const text = String(new FormData(form).get('text'));
      return text.trim() === '' ? undefined : post<Pasted>('/console/api/paste', 'text/plain', text);
    }}
    show=${(result: Pasted) => html`<${PastedView} ...${result} />`}
  >
    <label class="field"><span>Token, curl command or request</span>
      <textarea name="text" rows="12" autocomplete="off" spellcheck=${false} />
    </label>
    <p class="soft">The service explains it and does not store it. Nothing in it is sent or run. Without a URL, a gate uses its rule for /.</p>
  <//>`;
}

function PastedView({ requests }: Pasted): View {
  const isOne = requests.length === 1;
  return html`<div class="tried">
    ${!isOne && html`<h2 class="hidden" tabindex="-1">${requests.length} requests, refused ones first</h2>`}
    ${requests.map((each, index) => {
      const checks = html`<${PastedChecks} ...${each} />`;
      return html`<article class="detail">
        <header>
          <h2 tabindex="-1">${titleOf(each)}</h2>
          ${each.request !== undefined && html`<p class="soft"><code class="plain">${each.request}</code></p>`}
        </header>
        ${isOne ? checks : html`<details open=${index === 0}><summary>Checks</summary>${checks}</details>`}
      </article>`;
    })}
  </div>`;
}

function titleOf({ explanation }: PastedRequest): View {
  if (explanation === undefined) return html`Not explained`;
  const { verdict, reason, status } = explanation;
  const name = reason ?? status;
  return html`${verdictTitles[verdict]} ${name !== undefined && html`<code class="reason">${name}</code>`}`;
}

function PastedChecks({ repairs = [], route, problem, explanation }: PastedRequest): View {
  return html`
    ${repairs.map((note) => html`<p class="notice">Repaired: ${note}</p>`)}
    ${route !== undefined && html`<p class="notice">The route is open to all: tokens are ignored.</p>`}
    ${
      explanation === undefined
        ? html`<p class="problem" role="alert">${problem}</p>`
        : html`<${Explained} detail=${{ decision: { reason: explanation.reason }, walked: true, facts: [], explanation }} />`
    }
  `;
}
