import type { CheckVerdict, ExplainedCheck, NamedCause } from '../../explain/explained-check.ts';
import { Copy } from './parts.ts';
import { html, useState, type View } from './view.ts';

const verdictTexts: Readonly<Record<CheckVerdict, string>> = {
  pass: 'ok',
  fail: 'fails',
  follows: 'fails too',
  blocked: 'not evaluated',
  skipped: 'not applicable',
  unknown: 'unknown',
};

export function Checks({ checks }: { readonly checks: readonly ExplainedCheck[] }): View {
  const titleOf = ({ section = 'Request' }: ExplainedCheck): string => section;
  const titles = [...new Set(checks.map(titleOf))];
  return html`<table class="checks">
    <caption class="hidden">Every check, in order</caption>
    <thead class="hidden"><tr><th scope="col">Check</th><th scope="col">Result</th><th scope="col">Seen</th></tr></thead>
    ${titles.map((title) => html`<${Section} key=${title} title=${title} members=${checks.filter((check) => titleOf(check) === title)} />`)}
  </table>`;
}

/** Checks of one section. They are folded if none of them failed, is unknown or was not evaluated. */
function Section({ title, members }: { readonly title: string; readonly members: readonly ExplainedCheck[] }): View {
  const verdicts = members.map(readVerdict);
  const [isOpen, open] = useState(!verdicts.every((verdict) => verdict === 'pass' || verdict === 'skipped'));
  const counts = [...new Set(verdicts)].map(
    (verdict) => `${verdicts.filter((each) => each === verdict).length} ${verdictTexts[verdict]}`,
  );
  return html`<tbody>
    <tr class="part"><th colspan="3" scope="rowgroup">
      <button type="button" aria-expanded=${isOpen} onClick=${() => open(!isOpen)}>${title} <span class="soft">${counts.join(', ')}</span></button>
    </th></tr>
    ${isOpen && members.map(showCheck)}
  </tbody>`;
}

/** An absent value that is not required leaves nothing to check. */
function readVerdict({ verdict, why }: ExplainedCheck): CheckVerdict {
  return verdict === 'pass' && why?.endsWith('absent') ? 'skipped' : verdict;
}

function showCheck(check: ExplainedCheck): View {
  const { id, label = id, seen, why } = check;
  const verdict = readVerdict(check);
  const text = verdict === 'fail' ? seen : [seen, why].filter((each) => each !== undefined).join(', ');
  return html`<tr class=${verdict} key=${id}>
    <th scope="row">${label}</th><td class="verdict"><span>${verdictTexts[verdict]}</span></td><td class="seen">${text}</td>
  </tr>`;
}

export function Decisive({ check }: { readonly check: ExplainedCheck }): View {
  const { seen, expected, verified, setting, why, causes = [], fix } = check;
  const values = typeof expected === 'string' ? [expected] : (expected ?? []);
  const marked = markDifferences(seen ?? '', values);
  const facts = [
    ['Seen', seen && html`<code>${marked.seen}</code>`],
    ['Expected', values.length > 0 && marked.expected.map((text) => html`<code>${text}</code>`)],
    ['Setting', setting],
    ['Note', why],
    ['Caution', verified === false && 'The signature of the token was not verified.'],
  ] as const;
  return html`<div class="decisive">
    <${Facts} facts=${facts} />
    ${causes.length > 0 && html`<ul class="causes">${causes.map((cause) => html`<${Cause} ...${cause} key=${cause.id} />`)}</ul>`}
    ${causes.length === 0 && fix !== undefined && html`<${Fix} title="Fix" text=${fix} />`}
  </div>`;
}

/** Names and values. Those without a value are omitted. */
export function Facts({ facts }: { readonly facts: readonly (readonly [string, unknown])[] }): View | false {
  const present = facts.filter(([, value]) => value);
  return (
    present.length > 0 &&
    html`<dl>${present.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`
  );
}

export function Fix({ title, text }: { readonly title: string; readonly text: string }): View {
  return html`<p class="fix"><strong>${title}</strong> ${text} <${Copy} text=${text} label=${title.toLowerCase()} /></p>`;
}

function Cause({ id, certainty, fix, or, note }: NamedCause): View {
  return html`<li>
    <p><span class="tag ${certainty}">${certainty}</span> <code class="plain">${id}</code>${note && ` ${note}`}</p>
    <${Fix} title="Fix" text=${fix} />
    ${or !== undefined && html`<${Fix} title="Less likely" text=${or} />`}
  </li>`;
}

/** Marks the difference between the seen value and the most similar expected one. */
function markDifferences(seen: string, expected: readonly string[]) {
  const compared = expected.map((value) => ({ value, ...findCommon(seen, value) }));
  const [nearest] = compared.toSorted((one, other) => other.start + other.end - one.start - one.end);
  const common = nearest === undefined ? 0 : nearest.start + nearest.end;
  if (nearest === undefined || nearest.value === seen || 2 * common < Math.max(seen.length, nearest.value.length))
    return { seen, expected }; // they have too little in common
  // An empty mark shows the position of missing characters.
  const mark = (text: string): View => {
    const until = text.length - nearest.end;
    return html`<span>${text.slice(0, nearest.start)}<mark>${text.slice(nearest.start, until)}</mark>${text.slice(until)}</span>`;
  };
  return { seen: mark(seen), expected: expected.map((value) => (value === nearest.value ? mark(value) : value)) };
}

/** Counts the common characters at both ends. */
function findCommon(one: string, other: string): { readonly start: number; readonly end: number } {
  const shorter = Math.min(one.length, other.length);
  let start = 0;
  while (start < shorter && one[start] === other[start]) start++;
  let end = 0;
  while (end < shorter - start && one.at(-1 - end) === other.at(-1 - end)) end++;
  return { start, end };
}
