import type { CauseView, CheckView } from '../../server/console/wire.ts';
import { nameCheck, parts, verdictTexts } from './texts.ts';
import { html, type View } from './view.ts';

/** Every check of a call, by the part that it belongs to. */
export function Checks({ checks, label }: { readonly checks: readonly CheckView[]; readonly label: string }): View {
  const sections = parts
    .map(({ title }, index) => ({ title, members: checks.filter(({ group }) => partOf(group) === index) }))
    .filter(({ members }) => members.length > 0);
  return html`<table class="checks">
    <caption class="hidden">${label}</caption>
    <thead class="hidden">
      <tr><th scope="col">Check</th><th scope="col">Result</th><th scope="col">What was seen</th></tr>
    </thead>
    ${sections.map(
      ({ title, members }) => html`<tbody key=${title}>
        <tr class="part"><th colspan="3" scope="rowgroup">${title}</th></tr>
        ${members.map((check) => html`<${Row} key=${check.id} check=${check} />`)}
      </tbody>`,
    )}
  </table>`;
}

function partOf(group: string): number {
  return parts.findIndex(({ has }) => has(group));
}

function Row({ check }: { readonly check: CheckView }): View {
  const { id, verdict, seen, why } = check;
  const text = verdict === 'fail' ? seen : [seen, why].filter((each) => each !== undefined).join(', ');
  return html`<tr class=${verdict}>
    <th scope="row">${nameCheck(id)}</th>
    <td class="verdict"><span>${verdictTexts[verdict]}</span></td>
    <td class="seen">${text}</td>
  </tr>`;
}

/** The check that decided: what was seen, what was wanted, what to do. */
export function Decisive({ check }: { readonly check: CheckView }): View {
  const { seen, expected, verified, setting, why, causes = [], fix } = check;
  const wanted = typeof expected === 'string' ? [expected] : (expected ?? []);
  const hasFacts = [seen, setting, why].some((each) => each !== undefined) || wanted.length > 0 || verified === false;
  return html`<div class="decisive">
    ${
      hasFacts &&
      html`<dl>
      ${seen !== undefined && html`<div><dt>Seen</dt><dd><code>${seen}</code></dd></div>`}
      ${wanted.length > 0 && html`<div><dt>Wanted</dt><dd>${wanted.map((text) => html`<code>${text}</code>`)}</dd></div>`}
      ${setting !== undefined && html`<div><dt>Setting</dt><dd>${setting}</dd></div>`}
      ${why !== undefined && html`<div><dt>Note</dt><dd>${why}</dd></div>`}
      ${
        verified === false &&
        html`<div><dt>Caution</dt><dd>That is the text of a token whose signature was not verified.</dd></div>`
      }
    </dl>`
    }
    ${causes.length > 0 && html`<ul class="causes">${causes.map((cause) => html`<${Cause} cause=${cause} />`)}</ul>`}
    ${causes.length === 0 && fix !== undefined && html`<p class="fix"><strong>Fix</strong> ${fix}</p>`}
  </div>`;
}

function Cause({ cause }: { readonly cause: CauseView }): View {
  const { id, certainty, fix, or, note } = cause;
  return html`<li>
    <p><span class="tag ${certainty}">${certainty}</span> <code class="plain">${id}</code>${note && ` ${note}`}</p>
    <p class="fix"><strong>Fix</strong> ${fix}</p>
    ${or !== undefined && html`<p class="fix"><strong>Or</strong> ${or}</p>`}
  </li>`;
}
