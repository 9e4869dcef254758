import type { DecisionDetail } from '../../server/console/wire.ts';
import { Checks, Decisive } from './checks.ts';
import { fetchDecision } from './fetching.ts';
import { Status, Time } from './parts.ts';
import { outcomeTexts } from './texts.ts';
import { html, useEffect, useRef, useState, type View } from './view.ts';

type Found = DecisionDetail | 'asking' | 'gone';

/** One decision with all its checks, asked for when it is shown. */
export function DecisionView({ id }: { readonly id: string }): View {
  const found = useDecision(id);
  if (found === 'asking') return html`<p class="soft" role="status">The checks are fetched…</p>`;
  // A caller can choose the id of another request as its own: this page shows the service's ids only.
  if (found === 'gone' || found.decision.id !== id) {
    return html`<p class="soft" role="status">
      This decision is not among the last ones any more. The log still has it, under the id <code>${id}</code>.
    </p>`;
  }
  return html`<${Detail} detail=${found} />`;
}

/** Asks for a decision. */
export function useDecision(id: string): Found {
  const [found, show] = useState<{ readonly id: string; readonly what: Found }>({ id, what: 'asking' });
  useEffect(() => {
    let isShown = true;
    void fetchDecision(id).then((detail) => {
      if (isShown) show({ id, what: detail ?? 'gone' });
    });
    return () => {
      isShown = false;
    };
  }, [id]);
  return found.id === id ? found.what : 'asking';
}

function Detail({ detail }: { readonly detail: DecisionDetail }): View {
  const { decision, refusal } = detail;
  const { id, status, outcome, reason, method, route, at, ms, scheme } = decision;
  const title = useRef<HTMLElement | null>(null);
  // Whoever has chosen it wants to read it.
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
        <code class="plain">${method} ${route}</code> at <${Time} at=${at} />, ${ms} ms${scheme && `, ${scheme}`},
        id <code class="plain">${id}</code>
      </p>
    </header>
    ${refusal !== undefined && html`<p class="told">The client ${outcome === 'would_refuse' ? 'would have been' : 'was'} told: “${refusal.description}”</p>`}
    <${Explained} detail=${detail} />
  </article>`;
}

/** Why a call was decided so: the check that failed, then all of them. */
export function Explained({ detail }: { readonly detail: DecisionDetail }): View {
  const { decision, explanation, facts, refusal } = detail;
  // What used up a proof, or an outage, is not seen when the checks are walked once more.
  const failed = explanation?.checks.filter(({ verdict }) => verdict === 'fail') ?? [];
  const [first, ...others] = failed[0]?.reason === decision.reason ? failed : [undefined, ...failed];
  return html`
    ${first !== undefined && html`<${Decisive} check=${first} />`}
    ${
      first === undefined &&
      refusal !== undefined &&
      html`<div class="decisive">
      ${
        facts.length > 0 &&
        html`<dl>${facts.map(([name, text]) => html`<div><dt>${name}</dt><dd><code>${text}</code></dd></div>`)}</dl>`
      }
      <p class="fix"><strong>Fix</strong> ${refusal.fix}</p>
    </div>`
    }
    ${
      others.length > 0 &&
      html`<h3>Also wrong</h3>
      <ul class="also">
        ${others.map((check) => html`<li><code class="plain">${check?.reason ?? check?.id}</code> ${check?.seen ?? ''}</li>`)}
      </ul>`
    }
    ${
      explanation !== undefined
        ? html`<h3>Every check</h3>
          <${Checks} checks=${explanation.checks} label="Every check, in the order in which they are made" />`
        : html`<p class="soft without">${describeWithout(detail)}</p>`
    }
  `;
}

/** Why there are no checks. */
function describeWithout({ walked, refusal }: DecisionDetail): string {
  if (!walked) return 'Too many calls came at once: the checks of this one were not walked.';
  return refusal === undefined
    ? 'No token was looked at, so there are no checks.'
    : 'It was decided before a token was looked at, so there are no checks.';
}
