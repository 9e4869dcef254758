import type { Decision, DecisionDetail } from '../../server/console/wire.ts';
import { Checks, Decisive, Facts, Fix } from './checks.ts';
import { useFetched } from './fetching.ts';
import { Copy, outcomeTexts, Status, Time } from './parts.ts';
import { html, useEffect, useRef, type View } from './view.ts';

export function DecisionView({ id, keepsFocus = false }: Readonly<{ id: string; keepsFocus?: boolean }>): View {
  const fetched = useFetched<DecisionDetail>(`/console/api/decisions/${encodeURIComponent(id)}`);
  const title = useRef<HTMLElement | null>(null);
  useEffect(() => (keepsFocus ? undefined : title.current?.focus()), [fetched, keepsFocus]);
  if (fetched === 'loading') return html`<p class="soft" role="status">Loading…</p>`;
  // A caller can choose the id of another request as its own: this page shows the service's ids only.
  if (fetched === 'missing' || fetched.decision.id !== id) {
    return html`<p class="soft" role="status">
      The service keeps recent decisions only and no longer has this one. The log has it, with the id <code>${id}</code>.
    </p>`;
  }
  const { decision, refusal } = fetched;
  const { status, outcome, reason, method, route, path, at, ms, scheme } = decision;
  return html`<article class="detail">
    <header>
      <h2 tabindex="-1" ref=${title}>
        <${Status} status=${status} outcome=${outcome} /> ${outcomeTexts[outcome]}
        ${reason !== undefined && html` <code class="reason">${reason}</code>`}
      </h2>
      <p class="soft">
        <code class="plain">${method} ${path ?? route}</code> at <${Time} at=${at} />, ${ms} ms${scheme && `, ${scheme}`},
        id <code class="plain">${id}</code> <${Copy} text=${id} label="id" />
      </p>
    </header>
    <${Explained} detail=${fetched} />
    ${refusal !== undefined && html`<p class="response">Response to the client${outcome === 'would_refuse' ? ', if the rule were enforced' : ''}: “${refusal.description}” <a href=${refusal.docs} target="_blank" rel="noreferrer">About ${reason}</a></p>`}
  </article>`;
}

type ExplainedDetail = Omit<DecisionDetail, 'decision'> & { readonly decision: Pick<Decision, 'reason'> };

export function Explained({ detail }: { readonly detail: ExplainedDetail }): View {
  const { decision, explanation, facts, refusal } = detail;
  // A second evaluation does not see an outage.
  const failed = explanation?.checks.filter(({ verdict }) => verdict === 'fail') ?? [];
  const [first, ...others] = failed[0]?.reason === decision.reason ? failed : [undefined, ...failed];
  const decisive = (): View | false => {
    if (first !== undefined) return html`<${Decisive} check=${first} />`;
    if (refusal === undefined) return false;
    return html`<div class="decisive">
      <${Facts} facts=${facts.map(([name, text]) => [name, html`<code>${text}</code>`])} />
      <${Fix} title="Fix" text=${refusal.fix} />
    </div>`;
  };
  return html`<div class="columns"><div>
    ${decisive()}
    ${
      others.length > 0 &&
      html`<h3>Also wrong</h3>
      <ul class="also">
        ${others.map((check) => html`<li><code class="plain">${check?.reason ?? check?.id}</code> ${check?.seen ?? ''}</li>`)}
      </ul>`
    }
    </div><div>
    ${
      explanation !== undefined
        ? html`<h3>Every check</h3><${Checks} checks=${explanation.checks} />`
        : html`<p class="soft without">${describeMissingChecks(detail)}</p>`
    }
  </div></div>`;
}

function describeMissingChecks({ walked, refusal }: ExplainedDetail): string {
  if (!walked) return 'Too many requests arrived at once, so the checks of this one were not evaluated.';
  return refusal === undefined
    ? 'This request needs no token, so it has no checks.'
    : 'The request was refused before a token was validated, so it has no checks.';
}
