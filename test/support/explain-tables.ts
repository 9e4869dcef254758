import { findingCodes } from '../../src/cli/doctor/codes.ts';
import { causes, findCauses } from '../../src/explain/causes/causes.ts';
import { causeCases, makeFacts } from '../explain/cause-cases.ts';

const escapeCell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

/** Each cause with the refusals that it is named for, and what `explain` prints in the case of its test. */
function listCauses(): string {
  const rows = causes.map(({ id, reasons, meaning }) => {
    const found = causeCases
      .filter((each) => each.id === id && reasons.includes(each.reason))
      .flatMap(({ reason, appears }) => findCauses(reason, makeFacts(appears)).filter((cause) => cause.id === id))
      .at(0);
    const told = found?.note === undefined ? '' : `${escapeCell(found.note)} (${found.certainty}). `;
    const or = found?.or === undefined ? '' : ` Or: ${escapeCell(found.or)}`;
    return row([
      `\`${id}\``,
      reasons.join(', '),
      escapeCell(meaning),
      `${told}Fix: ${escapeCell(found?.fix ?? '')}${or}`,
    ]);
  });
  return [
    row(['cause', 'named for', 'what happened', 'what explain prints, in an example']),
    row(['---', '---', '---', '---']),
    ...rows,
  ].join('\n');
}

/** Each code of `doctor`, with an anchor. */
function listFindings(): string {
  const rows = Object.entries(findingCodes).map(([code, { level, meaning }]) =>
    row([`<a id="${code.toLowerCase()}"></a>${code}`, level === 'fail' ? 'failure' : 'warning', escapeCell(meaning)]),
  );
  return [row(['code', 'level', 'meaning']), row(['---', '---', '---']), ...rows].join('\n');
}

/** The tables of docs/explain.md and docs/doctor.md. */
export const explainTables: Readonly<Record<string, string>> = { causes: listCauses(), findings: listFindings() };
