import type { CauseView, CheckView } from '../../server/console/wire.ts';
import { verdictTexts } from './texts.ts';
import { html, type View } from './view.ts';

export function Checks({ checks, label }: { readonly checks: readonly CheckView[]; readonly label: string }): View {
  const titles = [...new Set(checks.map(sectionOf))];
  const sections = titles.map((title) => ({ title, members: checks.filter((check) => sectionOf(check) === title) }));
  return html`<table class="checks">
    <caption class="hidden">${label}</caption>
    <thead class="hidden">
      <tr><th scope="col">Check</th><th scope="col">Result</th><th scope="col">Seen</th></tr>
    </thead>
    ${sections.map(
      ({ title, members }) => html`<tbody key=${title}>
        <tr class="part"><th colspan="3" scope="rowgroup">${title}</th></tr>
        ${members.map((check) => html`<${Row} key=${check.id} check=${check} />`)}
      </tbody>`,
    )}
  </table>`;
}

function sectionOf({ section = 'Request' }: CheckView): string {
  return section;
}

function Row({ check }: { readonly check: CheckView }): View {
  const { id, label = id, verdict, seen, why } = check;
  const text = verdict === 'fail' ? seen : [seen, why].filter((each) => each !== undefined).join(', ');
  return html`<tr class=${verdict}>
    <th scope="row">${label}</th>
    <td class="verdict"><span>${verdictTexts[verdict]}</span></td>
    <td class="seen">${text}</td>
  </tr>`;
}

export function Decisive({ check }: { readonly check: CheckView }): View {
  const { seen, expected, verified, setting, why, causes = [], fix } = check;
  const values = typeof expected === 'string' ? [expected] : (expected ?? []);
  const hasFacts = [seen, setting, why].some((each) => each !== undefined) || values.length > 0 || verified === false;
  return html`<div class="decisive">
    ${
      hasFacts &&
      html`<dl>
      ${seen !== undefined && html`<div><dt>Seen</dt><dd><code>${seen}</code></dd></div>`}
      ${values.length > 0 && html`<div><dt>Expected</dt><dd>${values.map((text) => html`<code>${text}</code>`)}</dd></div>`}
      ${setting !== undefined && html`<div><dt>Setting</dt><dd>${setting}</dd></div>`}
      ${why !== undefined && html`<div><dt>Note</dt><dd>${why}</dd></div>`}
      ${verified === false && html`<div><dt>Caution</dt><dd>The signature of the token was not verified.</dd></div>`}
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
    ${or !== undefined && html`<p class="fix"><strong>Less likely</strong> ${or}</p>`}
  </li>`;
}
