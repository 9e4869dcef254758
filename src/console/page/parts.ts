import type { Decision } from '../../server/console/wire.ts';
import { html, useState, type View } from './view.ts';

export const outcomeTexts: Readonly<Record<Decision['outcome'], string>> = {
  allowed: 'Allowed',
  refused: 'Refused',
  would_refuse: 'Allowed, rule in report mode',
  other: 'No decision',
};

export function Status({ status, outcome }: { readonly status: number; readonly outcome: Decision['outcome'] }): View {
  return html`<span class="status ${outcome}">${status}</span>`;
}

export function Time({ at }: { readonly at: string }): View {
  const date = new Date(at);
  const text = date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });
  return html`<time datetime=${at} title=${date.toLocaleString()}>${text}</time>`;
}

export function Empty({ title, children }: { readonly title: string; readonly children: View }): View {
  return html`<div class="empty"><${Logo} /><h3>${title}</h3><p>${children}</p></div>`;
}

export function Copy({ text, label }: { readonly text: string; readonly label: string }): View {
  const [buttonText, setButtonText] = useState('Copy');
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => setButtonText('Copied'),
      () => setButtonText('Select and copy it by hand'),
    );
    setTimeout(() => setButtonText('Copy'), 2000);
  };
  return html`<button type="button" class="quiet copy" onClick=${copy}>
    <span aria-live="polite">${buttonText}</span><span class="hidden">: ${label}</span>
  </button>`;
}

export function Code({ text, label }: { readonly text: string; readonly label: string }): View {
  return html`<div class="code">
    <pre tabindex="0" role="region" aria-label=${label}><code>${text}</code></pre>
    <${Copy} text=${text} label=${label} />
  </div>`;
}

export function Logo(): View {
  return html`<img class="gate" src="/console/icon.svg" alt="" />`;
}
