import type { Problem } from './fetching.ts';
import { html, useEffect, useRef, useState, type View } from './view.ts';

export interface FormOptions<T> {
  readonly title: string;
  readonly button: string;
  readonly busyText: string;
  readonly hint: string;
  /** Returns `undefined` if there is nothing to send. */
  readonly send: (form: HTMLFormElement) => Promise<T | Problem> | undefined;
  readonly show: (result: T) => View;
  readonly children: View;
}

/** A form, and its result next to it. */
export function FormView<T extends object>(options: FormOptions<T>): View {
  const { title, button, busyText, hint, send, show, children } = options;
  const [progress, setProgress] = useState<T | Problem | 'none' | 'sending'>('none');
  const pane = useRef<HTMLElement | null>(null);
  // Screen readers follow the focus.
  useEffect(() => pane.current?.querySelector<HTMLElement>('h2')?.focus(), [progress]);
  const isSending = progress === 'sending';
  const submit = (event: Event): void => {
    event.preventDefault();
    const sent = isSending ? undefined : send(event.currentTarget as HTMLFormElement); // it has the listener
    if (sent === undefined) return;
    setProgress('sending');
    void sent.then(setProgress);
  };
  const result = (): View => {
    if (progress === 'none') return html`<p class="hint">${hint}</p>`;
    if (progress === 'sending') return html`<p class="soft" role="status">${busyText}</p>`;
    return 'problem' in progress ? html`<p class="problem" role="alert">${progress.problem}</p>` : show(progress);
  };
  return html`<div class="split try">
    <form class="list" onSubmit=${submit} aria-labelledby="form-title">
      <h1 id="form-title" tabindex="-1">${title}</h1>
      ${children}
      <button type="submit" class="main" aria-disabled=${isSending}>${isSending ? busyText : button}</button>
    </form>
    <section class="pane" ref=${pane} aria-label="Result" aria-busy=${isSending}>${result()}</section>
  </div>`;
}
