import { readFileSync } from 'node:fs';
import { libraryCases } from '../../../test/catalogue/library-cases.ts';
import { providerFaults } from '../../../test/catalogue/provider-faults.ts';
import { publishedHoles } from '../../../test/catalogue/published-holes.ts';
import { catalogue } from '../../../test/catalogue/rows.ts';
import { slowClients } from '../../../test/catalogue/slow-clients.ts';
import { differenceTable } from '../../../test/differential/differences.ts';
import { table } from '../../shared/page.js';

/** A row of the catalogue, whichever way it is run. */
interface Row {
  readonly attack: string;
  readonly name: string;
  readonly status: number;
  readonly reason: string | null;
  readonly source: string;
}

/** One line for all cases of an attack that end alike. */
function listAttacks(rows: readonly Row[]): string {
  const lines = new Map<string, { readonly row: Row; readonly names: string[] }>();
  for (const row of rows) {
    const key = JSON.stringify([row.attack, row.status, row.reason]);
    const line = lines.get(key) ?? { row, names: [] };
    line.names.push(row.name);
    lines.set(key, line);
  }
  return table(
    ['attack', 'cases', 'status', 'reason', 'source'],
    [...lines.values()].map(({ row: { attack, status, reason, source }, names }) => [
      ...[attack, names.map(show).join(' · '), status === 0 ? 'closed' : String(status)],
      ...[reason === null ? '–' : `\`${reason}\``, source],
    ]),
  );
}

/** A name in a cell of a table: nothing in it is read as markup. */
function show(name: string): string {
  return `\`${name
    .replaceAll('`', 'ˋ')
    .replaceAll('|', '¦')
    .replaceAll(/[^\x20-\x7e’ˋ¦]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)}\``;
}

const vectorFiles: Readonly<Record<string, string>> = {
  rsa_signature_2048_sha256: 'RS256 signatures',
  ecdsa_secp256r1_sha256_p1363: 'ES256 signatures',
  ed25519: 'EdDSA signatures',
  json_web_signature: 'whole JWS',
};

function vectors(): string {
  const rows = Object.entries(vectorFiles).map(([name, what]) => {
    const url = new URL(`../../../test/vectors/wycheproof_${name}.json`, import.meta.url);
    return [what, `\`${name}\``, String(JSON.parse(readFileSync(url, 'utf8')).numberOfTests)];
  });
  return table(['what', 'file of Wycheproof', 'cases'], rows);
}

const parts: Readonly<Record<string, readonly Row[]>> = {
  ...catalogue,
  'responses of the provider': providerFaults,
  'slow clients': slowClients,
  ...libraryCases,
};

function counts(): string {
  const rows = Object.entries(parts);
  const total = rows.reduce((sum, [, { length }]) => sum + length, 0);
  const counted = rows.map(([name, { length }]) => [name, String(length)]);
  return table(['part', 'cases'], [...counted, ['all', String(total)]]);
}

function holes(): string {
  const rows = publishedHoles.map(({ id, product, hole, here }) => {
    const inputs = typeof here === 'string' ? '–' : here.map(({ name }) => show(name)).join(' · ');
    const decisions =
      typeof here === 'string' ? here : [...new Set(here.map(({ decision }) => `\`${decision}\``))].join(', ');
    return [id, product, hole, inputs, decisions];
  });
  return table(['published as', 'product', 'hole there', 'inputs', 'decision here'], rows);
}

/** The tables of docs/evidence/attacks.md, by the name of their place. */
export const hostileTables: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    Object.entries(parts).map(([name, rows]) => [`attacks_${name.replaceAll(/\W/g, '_')}`, listAttacks(rows)] as const),
  ),
  hostileCounts: counts(),
  hostileVectors: vectors(),
  publishedHoles: holes(),
  differences: differenceTable(),
};
