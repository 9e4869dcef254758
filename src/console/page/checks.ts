import type { CauseView, CheckView } from '../../server/console/wire.ts';
import { Copy } from './parts.ts';
import { verdictTexts } from './texts.ts';
import { html, useState, type View } from './view.ts';

export function Checks({ checks, label }: { readonly checks: readonly CheckView[]; readonly label: string }): View {
  const titles = [...new Set(checks.map(sectionOf))];
  return html`<table class="checks">
    <caption class="hidden">${label}</caption>
    <thead class="hidden">
      <tr><th scope="col">Check</th><th scope="col">Result</th><th scope="col">Seen</th></tr>
    </thead>
    ${titles.map((title) => {
      const members = checks.filter((check) => sectionOf(check) === title);
      return html`<${Section} key=${title} title=${title} members=${members} />`;
    })}
  </table>`;
}

function sectionOf({ section = 'Request' }: CheckView): string {
  return section;
}

/** Checks of one section. They are folded if none of them failed, is unknown or was not evaluated. */
function Section({ title, members }: { readonly title: string; readonly members: readonly CheckView[] }): View {
  const verdicts = members.map(readVerdict);
  const [isOpen, open] = useState(!verdicts.every((verdict) => verdict === 'pass' || verdict === 'skipped'));
  const counts = [...new Set(verdicts)].map(
    (verdict) => `${verdicts.filter((each) => each === verdict).length} ${verdictTexts[verdict]}`,
  );
  return html`<tbody>
    <tr class="part"><th colspan="3" scope="rowgroup">
      <button type="button" aria-expanded=${isOpen} onClick=${() => open(!isOpen)}>
        ${title} <span class="soft">${counts.join(', ')}</span>
      </button>
    </th></tr>
    ${isOpen && members.map((check) => html`<${Row} key=${check.id} check=${check} />`)}
  </tbody>`;
}

/** An absent value that is not required leaves nothing to check. */
function readVerdict({ verdict, why }: CheckView): CheckView['verdict'] {
  return verdict === 'pass' && why?.endsWith('absent') ? 'skipped' : verdict;
}

function Row({ check }: { readonly check: CheckView }): View {
  const { id, label = id, seen, why } = check;
  const verdict = readVerdict(check);
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
  const marked = markDifferences(seen ?? '', values);
  const hasFacts = [seen, setting, why].some((each) => each !== undefined) || values.length > 0 || verified === false;
  return html`<div class="decisive">
    ${
      hasFacts &&
      html`<dl>
      ${seen !== undefined && html`<div><dt>Seen</dt><dd><code>${marked.seen}</code></dd></div>`}
      ${values.length > 0 && html`<div><dt>Expected</dt><dd>${marked.expected.map((text) => html`<code>${text}</code>`)}</dd></div>`}
      ${setting !== undefined && html`<div><dt>Setting</dt><dd>${setting}</dd></div>`}
      ${why !== undefined && html`<div><dt>Note</dt><dd>${why}</dd></div>`}
      ${verified === false && html`<div><dt>Caution</dt><dd>The signature of the token was not verified.</dd></div>`}
    </dl>`
    }
    ${causes.length > 0 && html`<ul class="causes">${causes.map((cause) => html`<${Cause} cause=${cause} />`)}</ul>`}
    ${causes.length === 0 && fix !== undefined && html`<${Fix} title="Fix" text=${fix} />`}
  </div>`;
}

export function Fix({ title, text }: { readonly title: string; readonly text: string }): View {
  return html`<p class="fix"><strong>${title}</strong> ${text} <${Copy} text=${text} label=${title.toLowerCase()} /></p>`;
}

function Cause({ cause }: { readonly cause: CauseView }): View {
  const { id, certainty, fix, or, note } = cause;
  return html`<li>
    <p><span class="tag ${certainty}">${certainty}</span> <code class="plain">${id}</code>${note && ` ${note}`}</p>
    <${Fix} title="Fix" text=${fix} />
    ${or !== undefined && html`<${Fix} title="Less likely" text=${or} />`}
  </li>`;
}

/** Minimum number of common characters at both ends. */
const minCommon = 4;

interface Common {
  readonly start: number;
  readonly end: number;
}

/** Marks the difference between the seen value and the most similar expected one. */
function markDifferences(
  seen: string,
  expected: readonly string[],
): { readonly seen: View | string; readonly expected: readonly (View | string)[] } {
  const compared = expected.map((value) => ({ value, common: findCommon(seen, value) }));
  const [nearest] = compared.toSorted((one, other) => sum(other.common) - sum(one.common));
  if (nearest === undefined || nearest.value === seen || sum(nearest.common) < minCommon) return { seen, expected };
  return {
    seen: mark(seen, nearest.common),
    expected: compared.map((each) => (each === nearest ? mark(each.value, each.common) : each.value)),
  };
}

function sum({ start, end }: Common): number {
  return start + end;
}

function findCommon(one: string, other: string): Common {
  const shorter = Math.min(one.length, other.length);
  let start = 0;
  while (start < shorter && one[start] === other[start]) start++;
  let end = 0;
  while (end < shorter - start && one.at(-1 - end) === other.at(-1 - end)) end++;
  return { start, end };
}

/** An empty mark shows the position of missing characters. */
function mark(text: string, { start, end }: Common): View {
  const until = text.length - end;
  return html`<span>${text.slice(0, start)}<mark>${text.slice(start, until)}</mark>${text.slice(until)}</span>`;
}
