import { readFileSync } from 'node:fs';
import { toJsonSchema } from '@valibot/to-json-schema';
import { rulesSchema } from '../../../src/gate/rules/schema/rules-schema.ts';
import { signalsSchema } from '../../../src/server/revocation/signals-file.ts';
import { copyFiles, pages, referencePage } from '../../../test/support/pages.ts';
import { auditSchema } from './audit-schema.ts';
import { readmeTables } from './readme-tables.ts';
import { writeReference } from './reference.ts';

/** A part of a page that is written from the code. */
export const tablePlace = /<!-- table: (\w+) -->\n([\s\S]*?)<!-- end -->/g;

/** Pages that may have tables and copies of files. */
export const writtenPages: readonly string[] = [...pages.filter((page) => page !== referencePage), 'CONTRIBUTING.md'];

/** A page with its tables and its copies of files as the code and the files have them. */
function writePage(page: string): string {
  const text = readFileSync(page, 'utf8').replace(tablePlace, (_, name: string) => {
    const table = readmeTables[name];
    if (table === undefined) throw new Error(`${page}: there is no table ${name}`);
    return `<!-- table: ${name} -->\n${table}\n<!-- end -->`;
  });
  return copyFiles(text);
}

const writeJson = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`;

/** Every generated file, by its path. The reference needs a build. */
export const generatedFiles: ReadonlyMap<string, () => string> = new Map<string, () => string>([
  ...writtenPages.map((page) => [page, () => writePage(page)] as const),
  [referencePage, writeReference],
  [
    'schema/rules.schema.json',
    () => writeJson(toJsonSchema(rulesSchema, { target: 'draft-07', ignoreActions: ['check'] })),
  ],
  [
    'schema/signals.schema.json',
    () => writeJson(toJsonSchema(signalsSchema, { target: 'draft-07', errorMode: 'ignore' })),
  ],
  ['schema/audit.schema.json', () => writeJson(auditSchema)],
]);
