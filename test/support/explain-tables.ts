import { findingCodes } from '../../src/cli/doctor/codes.ts';
import { causes, findCauses } from '../../src/explain/causes/causes.ts';
import { look } from '../../src/explain/looks.ts';
import { formatFirst, plainStyle } from '../../src/explain/terminal-text.ts';
import { AccessError, type Reason } from '../../src/failures.ts';
import type { Gathered } from '../../src/resource-server/dry-run.ts';
import { stepKinds } from '../../src/resource-server/steps.ts';
import { type CauseCase, causeCases, makeFacts } from '../explain/cause-cases.ts';

const escapeCell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

/** Each cause with the refusals that it is named for. */
function listCauses(): string {
  const rows = causes.map(({ id, reasons, meaning }) =>
    row([`[\`${id}\`](#${id})`, reasons.join(', '), escapeCell(meaning)]),
  );
  return [row(['cause', 'named for', 'what happened']), row(['---', '---', '---']), ...rows].join('\n');
}

/** For each cause what `explain` prints of the calls that its tests are made with. */
function listSamples(): string {
  const ids = [...new Set(causes.map(({ id }) => id))];
  return ids
    .map((id) => {
      const samples = causeCases.filter((each) => each.id === id).map(printSample);
      return `#### ${id}\n\n\`\`\`text\n${[...new Set(samples)].join('\n\n')}\n\`\`\``;
    })
    .join('\n\n');
}

/** The first lines of an explanation, as they are made for the check that refuses such a call. */
function printSample({ reason, appears }: CauseCase): string {
  const facts = makeFacts(appears);
  const { seen, force, now } = facts;
  // Nobody introspects here, so the step of that name refuses nothing.
  const kind = stepKinds.find(({ id, reasons }) => id !== 'introspection' && reasons.some((each) => each === reason));
  if (kind === undefined) throw new Error(`no check refuses with ${reason}`);
  const { header, claims, proofClaims, token } = seen;
  const refusal = new AccessError(reason as Reason); // each reason of a cause is one, as its own test says
  // What a look reads of a call; the rest of a judgement is not asked here.
  const sight = {
    ...{ header, claims, proofClaims, credentials: { scheme: 'Bearer', token, proof: undefined } },
    call: { request: { method: 'GET' } },
  } as unknown as Gathered;
  const { expected, seen: shown, why, setting } = look(kind.id, { sight, force, now, refusal });
  const check = {
    ...{ id: kind.id, group: kind.group, verdict: 'fail' as const, reason, docs: `refusals.md#${reason}` },
    ...(expected !== undefined && { expected }),
    ...(shown !== undefined && { seen: shown }),
    ...(why !== undefined && { why }),
    ...(setting !== undefined && { setting }),
    causes: findCauses(reason, facts),
  };
  const [headline = '', ...lines] = formatFirst('refused', check, plainStyle);
  // The address of the page is long, and the same for all but its end.
  return [headline.replace(/https:\S*\/docs\//, '…/docs/'), ...lines].map((line) => line.trimEnd()).join('\n');
}

/** Each code of `doctor`, with an anchor. */
function listFindings(): string {
  const rows = Object.entries(findingCodes).map(([code, { level, meaning }]) =>
    row([`<a id="${code.toLowerCase()}"></a>${code}`, level === 'fail' ? 'failure' : 'warning', escapeCell(meaning)]),
  );
  return [row(['code', 'level', 'meaning']), row(['---', '---', '---']), ...rows].join('\n');
}

/** The tables of docs/explain.md and docs/doctor.md. */
export const explainTables: Readonly<Record<string, string>> = {
  causes: listCauses(),
  samples: listSamples(),
  findings: listFindings(),
};
