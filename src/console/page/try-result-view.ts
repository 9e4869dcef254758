import { Explained, useDecision } from './decision-view.ts';
import { Code, ResponseStatus } from './parts.ts';
import type { TriedRequest, TryResult } from './try-wire.ts';
import { html, useEffect, useRef, type View } from './view.ts';

export function TryResultView({ result }: { readonly result: TryResult }): View {
  const { requests, command, remark, problem } = result;
  const title = useRef<HTMLElement | null>(null);
  useEffect(() => {
    title.current?.focus();
    return undefined;
  }, [result]);
  if (problem !== undefined) return html`<p class="problem" role="alert">${problem}</p>`;
  return html`<div class="tried">
    <h2 class="hidden" tabindex="-1" ref=${title}>Status ${requests.map(({ status }) => status).join(', then ')}</h2>
    ${remark !== '' && html`<p class="notice">${remark}</p>`}
    ${requests.map(
      (request, index) =>
        html`<${Exchange} key=${request.requestId} request=${request} name=${nameRequest(index, requests.length)} isLast=${index === requests.length - 1} />`,
    )}
    <h3>Repeat in a terminal</h3>
    <${Code} text=${command} label="Command that repeats it with a new token" />
  </div>`;
}

function nameRequest(index: number, count: number): string {
  return count === 1 ? 'Request' : (['First request', 'Second request', 'Third request'][index] ?? 'Request');
}

interface ExchangeOptions {
  readonly request: TriedRequest;
  readonly name: string;
  readonly isLast: boolean;
}

function Exchange({ request, name, isLast }: ExchangeOptions): View {
  const { sent, status, headers, body, requestId } = request;
  return html`<article class="detail">
    <header><h2><${ResponseStatus} status=${status} /> ${name}</h2></header>
    <pre tabindex="0" role="region" aria-label="${name}; token and proof are shortened"><code>${sent}</code></pre>
    <details open=${isLast}>
      <summary>Response</summary>
      <pre tabindex="0" role="region" aria-label="Response to ${name.toLowerCase()}"><code>${formatResponse(status, headers, body)}</code></pre>
    </details>
    <details open=${isLast}>
      <summary>Checks</summary>
      <${RequestChecks} id=${requestId} />
    </details>
  </article>`;
}

function RequestChecks({ id }: { readonly id: string }): View {
  const fetched = useDecision(id);
  if (fetched === 'loading') return html`<p class="soft" role="status">Loading…</p>`;
  if (fetched === 'missing')
    return html`<p class="soft">Too many requests arrived at once: the service has no decision for this one.</p>`;
  return html`<${Explained} detail=${fetched} />`;
}

/** Headers without a relation to the decision. */
const hiddenHeaders = new Set(['connection', 'keep-alive', 'date', 'content-length', 'transfer-encoding', 'vary']);

function formatResponse(status: number, headers: TriedRequest['headers'], body: string): string {
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
