import { Explained, useDecision } from './decision-view.ts';
import { AnswerStatus, Code } from './parts.ts';
import type { TriedCall, TryResult } from './try-wire.ts';
import { html, useEffect, useRef, type View } from './view.ts';

/** What came of a try: each call with its answer and its checks. */
export function Tried({ result }: { readonly result: TryResult }): View {
  const { calls, command, remark, problem } = result;
  const title = useRef<HTMLElement | null>(null);
  useEffect(() => {
    title.current?.focus();
    return undefined;
  }, [result]);
  if (problem !== undefined) return html`<p class="problem" role="alert">${problem}</p>`;
  return html`<div class="tried">
    <h2 class="hidden" tabindex="-1" ref=${title}>Answered with ${calls.map(({ status }) => status).join(', then ')}</h2>
    ${remark !== '' && html`<p class="notice">${remark}</p>`}
    ${calls.map(
      (call, index) =>
        html`<${Call} key=${call.requestId} call=${call} name=${nameCall(index, calls.length)} isLast=${index === calls.length - 1} />`,
    )}
    <h3>Again, in a terminal</h3>
    <${Code} text=${command} label="Command that repeats it with a token of its own" />
  </div>`;
}

function nameCall(index: number, count: number): string {
  return count === 1 ? 'The call' : (['First call', 'Second call', 'Third call'][index] ?? 'Call');
}

interface CallOptions {
  readonly call: TriedCall;
  readonly name: string;
  readonly isLast: boolean;
}

function Call({ call, name, isLast }: CallOptions): View {
  const { sent, status, headers, body, requestId } = call;
  return html`<article class="detail">
    <header><h2><${AnswerStatus} status=${status} /> ${name}</h2></header>
    <pre tabindex="0" role="region" aria-label="Request of ${name.toLowerCase()}; token and proof are shortened"><code>${sent}</code></pre>
    <details open=${isLast}>
      <summary>Answer</summary>
      <pre tabindex="0" role="region" aria-label="Answer of ${name.toLowerCase()}"><code>${writeAnswer(status, headers, body)}</code></pre>
    </details>
    <details open=${isLast}>
      <summary>Checks</summary>
      <${CallChecks} id=${requestId} />
    </details>
  </article>`;
}

function CallChecks({ id }: { readonly id: string }): View {
  const found = useDecision(id);
  if (found === 'asking') return html`<p class="soft" role="status">The checks are fetched…</p>`;
  if (found === 'gone') return html`<p class="soft">The service has not told of this call: too many came at once.</p>`;
  return html`<${Explained} detail=${found} />`;
}

/** Headers that say nothing about the decision. */
const usual = new Set(['connection', 'keep-alive', 'date', 'content-length', 'transfer-encoding', 'vary']);

function writeAnswer(status: number, headers: TriedCall['headers'], body: string): string {
  const lines = headers.filter(([name]) => !usual.has(name)).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP ${status}`, ...lines, ...(body === '' ? [] : ['', indent(body)])].join('\n');
}

function indent(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), undefined, 2);
  } catch {
    return body;
  }
}
