import type { PasteResult } from '../../server/console/wire.ts';
import { Explained } from './decision-view.ts';
import { post } from './fetching.ts';
import { FormView } from './form-view.ts';
import { html, useState, type View } from './view.ts';

const verdictTitles = { admitted: 'Admitted', refused: 'Refused', undecided: 'Undecided' } as const;

export function PasteView(): View {
  const [text, setText] = useState('');
  return html`<${FormView}
    title="Paste"
    button="Explain"
    busyText="Explaining…"
    hint="Every check of the token or request appears here."
    send=${() => (text.trim() === '' ? undefined : post<PasteResult>('/console/api/paste', 'text/plain', text))}
    show=${(result: PasteResult) => html`<${PastedView} ...${result} />`}
  >
    <label class="field"><span>Token, curl command or request</span>
      <textarea
        rows="12"
        autocomplete="off"
        spellcheck=${false}
        value=${text}
        onInput=${(event: Event) => setText((event.target as HTMLTextAreaElement).value)}
      />
    </label>
    <p class="soft">The service explains it and does not store it. Nothing in it is sent or run. Without a URL, a gate uses its rule for /.</p>
  <//>`;
}

function PastedView({ request, repairs = [], explanation }: PasteResult): View | false {
  if (explanation === undefined) return false;
  const { verdict, reason } = explanation;
  return html`<article class="detail">
    <header>
      <h2 tabindex="-1">${verdictTitles[verdict]} ${reason !== undefined && html`<code class="reason">${reason}</code>`}</h2>
      ${request !== undefined && html`<p class="soft"><code class="plain">${request}</code></p>`}
    </header>
    ${repairs.map((note) => html`<p class="notice">Repaired: ${note}</p>`)}
    <${Explained} detail=${{ decision: { reason }, walked: true, facts: [], explanation }} />
  </article>`;
}
