import { doctorChecks, findings } from '../../../src/cli/doctor/finding.ts';
import { type CheckRecord, checks } from '../../../src/core/checks.ts';
import { docsUrl, type Reason } from '../../../src/core/failures.ts';
import { Refused } from '../../../src/core/refused.ts';
import { causes, findCauses, nameCauses } from '../../../src/explain/causes/causes.ts';
import { nameCheck } from '../../../src/explain/explanation.ts';
import { showStep } from '../../../src/explain/looks.ts';
import { formatFirst, plainStyle } from '../../../src/explain/terminal-text.ts';
import { type CauseCase, causeCases, makeFacts } from '../../../test/explain/cause-cases.ts';
import { table } from '../../shared/page.js';

const escapeCell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');

const ids = Object.keys(checks) as (keyof typeof checks)[]; // the keys of the table

/** Each check, in the order in which they are made. */
function listChecks(): string {
  const rows = ids.map((id) => {
    const { reasons, label, row: line } = checks[id];
    const named = reasons.map((reason) => `[\`${reason}\`](refusals.md#${reason})`).join(', ');
    return [`\`${id}\``, label, line, named];
  });
  return table(['check', 'name', 'row', 'reasons'], rows);
}

/** Each cause with the refusals that it is named for. */
function listCauses(): string {
  return table(
    ['cause', 'named for', 'what happened'],
    causes.map(({ id, reasons, meaning }) => [`[\`${id}\`](#${id})`, reasons.join(', '), escapeCell(meaning)]),
  );
}

/** For each cause what `explain` prints of the calls that its tests are made with. */
function listSamples(): string {
  return [...new Set(causes.map((cause) => cause.id))]
    .map((id) => {
      const samples = causeCases.filter((each) => each.id === id).map(printSample);
      return `#### ${id}\n\n\`\`\`text\n${[...new Set(samples)].join('\n\n')}\n\`\`\``;
    })
    .join('\n\n');
}

/** The first lines of an explanation, of the check that refuses such a request. */
function printSample({ reason, appears }: CauseCase): string {
  const facts = makeFacts(appears);
  const { seen, force, now } = facts;
  // No sample is introspected, so the check of that name refuses none.
  const id = ids.find((each) => each !== 'introspection' && checks[each].reasons.some((one) => one === reason));
  if (id === undefined) throw new Error(`no check refuses with ${reason}`);
  const { list }: CheckRecord = checks[id];
  const { header, claims, proofClaims, token } = seen;
  const refusal = new Refused(reason as Reason); // each reason of a cause is one, as its own test says
  const sight = { header, claims, proofClaims, credentials: { scheme: 'Bearer', token, proof: undefined } } as const;
  const comparison = list === undefined && id !== 'any_scope' ? undefined : { expected: force.scopes };
  const { expected, seen: shown, why, setting } = showStep({ id, refusal, comparison }, { sight, force, now });
  const check = {
    ...{ ...nameCheck(id), verdict: 'fail' as const, reason, docs: `refusals.md#${reason}` },
    ...(expected !== undefined && { expected }),
    ...(shown !== undefined && { seen: shown }),
    ...(why !== undefined && { why }),
    ...(setting !== undefined && { setting }),
    causes: nameCauses(findCauses(reason, facts), ({ trial }) => trial !== undefined),
  };
  const lines = formatFirst('refused', check, plainStyle);
  return lines.map((line) => line.trimEnd().replace(docsUrl, '…/docs/')).join('\n');
}

/** Each problem of `doctor`, with an anchor. */
function listFindings(): string {
  const rows = Object.entries(findings).map(([name, { check, level, meaning }]) => [
    ...[`<a id="${name}"></a>\`${name}\``, check, level === 'fail' ? 'failure' : 'warning', escapeCell(meaning)],
  ]);
  return table(['problem', 'check', 'level', 'meaning'], rows);
}

/** Each check of `doctor`. */
function listDoctorChecks(): string {
  return table(
    ['check', 'what must hold'],
    Object.entries(doctorChecks).map(([name, title]) => [`\`${name}\``, escapeCell(title)]),
  );
}

/** The tables of docs/causes.md and docs/explain.md. */
export const explainTables: Readonly<Record<string, string>> = {
  checks: listChecks(),
  causes: listCauses(),
  samples: listSamples(),
  findings: listFindings(),
  doctorChecks: listDoctorChecks(),
};
