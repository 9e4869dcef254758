import type { PasteResult } from '../../server/console/wire.ts';
import { Explained } from './decision-view.ts';
import { sendPaste } from './fetching.ts';
import { html, useEffect, useRef, useState, type View } from './view.ts';

type Progress = PasteResult | 'none' | 'sending';

export function PasteView(): View {
  const [text, setText] = useState('');
  const [progress, setProgress] = useState<Progress>('none');
  const submit = (event: Event): void => {
    event.preventDefault();
    if (progress === 'sending' || text.trim() === '') return;
    setProgress('sending');
    void sendPaste(text).then(setProgress);
  };
  return html`<div class="split try">
    <form class="list" onSubmit=${submit} aria-labelledby="paste-title">
      <h1 id="paste-title" tabindex="-1">Paste</h1>
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
      <button type="submit" class="main" aria-disabled=${progress === 'sending'}>Explain</button>
    </form>
    <section class="pane" aria-label="Result" aria-busy=${progress === 'sending'}>
      ${
        progress === 'none'
          ? html`<p class="hint">Every check of the token or request appears here.</p>`
          : progress === 'sending'
            ? html`<p class="soft" role="status">Explaining…</p>`
            : html`<${PasteResultView} result=${progress} />`
      }
    </section>
  </div>`;
}

const verdictTitles = { admitted: 'Admitted', refused: 'Refused', undecided: 'Undecided' } as const;

function PasteResultView({ result }: { readonly result: PasteResult }): View {
  const { problem, request, repairs = [], explanation } = result;
  const title = useRef<HTMLElement | null>(null);
  useEffect(() => {
    title.current?.focus();
    return undefined;
  }, [result]);
  if (explanation === undefined) return html`<p class="problem" role="alert">${problem}</p>`;
  const { verdict, reason } = explanation;
  return html`<article class="detail">
    <header>
      <h2 tabindex="-1" ref=${title}>${verdictTitles[verdict]} ${reason !== undefined && html`<code class="reason">${reason}</code>`}</h2>
      ${request !== undefined && html`<p class="soft"><code class="plain">${request}</code></p>`}
    </header>
    ${repairs.map((note) => html`<p class="notice">Repaired: ${note}</p>`)}
    <${Explained} detail=${{ decision: { reason }, walked: true, facts: [], explanation }} />
  </article>`;
}
