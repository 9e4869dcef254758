import type { Decision, DecisionDetail } from '../../server/console/wire.ts';
import { Checks, Decisive, Fix } from './checks.ts';
import { fetchDecision } from './fetching.ts';
import { Copy, Status, Time } from './parts.ts';
import { outcomeTexts } from './texts.ts';
import { html, useEffect, useRef, useState, type View } from './view.ts';

type Fetched = DecisionDetail | 'loading' | 'missing';

export function DecisionView({ id }: { readonly id: string }): View {
  const fetched = useDecision(id);
  if (fetched === 'loading') return html`<p class="soft" role="status">Loading…</p>`;
  // A caller can choose the id of another request as its own: this page shows the service's ids only.
  if (fetched === 'missing' || fetched.decision.id !== id) {
    return html`<p class="soft" role="status">
      The service keeps recent decisions only and no longer has this one. The log has it, with the id <code>${id}</code>.
    </p>`;
  }
  return html`<${Detail} detail=${fetched} />`;
}

export function useDecision(id: string): Fetched {
  const [fetched, show] = useState<{ readonly id: string; readonly what: Fetched }>({ id, what: 'loading' });
  useEffect(() => {
    let isShown = true;
    void fetchDecision(id).then((detail) => {
      if (isShown) show({ id, what: detail ?? 'missing' });
    });
    return () => {
      isShown = false;
    };
  }, [id]);
  return fetched.id === id ? fetched.what : 'loading';
}

function Detail({ detail }: { readonly detail: DecisionDetail }): View {
  const { decision, refusal } = detail;
  const { id, status, outcome, reason, method, route, path, at, ms, scheme } = decision;
  const title = useRef<HTMLElement | null>(null);
  useEffect(() => {
    title.current?.focus();
    return undefined;
  }, [id]);
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
    ${refusal !== undefined && html`<p class="response">Response to the client${outcome === 'would_refuse' ? ', if the rule were enforced' : ''}: “${refusal.description}” <a href=${refusal.docs} target="_blank" rel="noreferrer">About ${reason}</a></p>`}
    <${Explained} detail=${detail} />
  </article>`;
}

type ExplainedDetail = Omit<DecisionDetail, 'decision'> & { readonly decision: Pick<Decision, 'reason'> };

export function Explained({ detail }: { readonly detail: ExplainedDetail }): View {
  const { decision, explanation, facts, refusal } = detail;
  // A second evaluation does not see an outage.
  const failed = explanation?.checks.filter(({ verdict }) => verdict === 'fail') ?? [];
  const [first, ...others] = failed[0]?.reason === decision.reason ? failed : [undefined, ...failed];
  return html`<div class="columns"><div>
    ${first !== undefined && html`<${Decisive} check=${first} />`}
    ${
      first === undefined &&
      refusal !== undefined &&
      html`<div class="decisive">
      ${
        facts.length > 0 &&
        html`<dl>${facts.map(([name, text]) => html`<div><dt>${name}</dt><dd><code>${text}</code></dd></div>`)}</dl>`
      }
      <${Fix} title="Fix" text=${refusal.fix} />
    </div>`
    }
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
        ? html`<h3>Every check</h3>
          <${Checks} checks=${explanation.checks} label="Every check, in order" />`
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
