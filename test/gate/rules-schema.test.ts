import { readFileSync, writeFileSync } from 'node:fs';
import { toJsonSchema } from '@valibot/to-json-schema';
import { expect, it } from 'vitest';
import { rulesSchema } from '../../src/gate/rules/rules-schema.ts';

const file = 'schema/rules.schema.json';
const written = toJsonSchema(rulesSchema, { target: 'draft-07' });

// `npm run docs` writes it anew.
if (process.env['UPDATE_DOCS'] !== undefined) writeFileSync(file, `${JSON.stringify(written, undefined, 2)}\n`);

it('the published schema says what the reader takes', () => {
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(JSON.parse(JSON.stringify(written)));
});

it('each member has a text for editors, and no object takes members that are not known', () => {
  const lacking: string[] = [];
  const visit = (schema: unknown, path: string): void => {
    if (typeof schema !== 'object' || schema === null) return;
    const { properties, additionalProperties } = schema as Readonly<Record<string, unknown>>;
    for (const [name, member] of Object.entries((properties as object | undefined) ?? {})) {
      const { description } = member as { readonly description?: string };
      if (description === undefined || description === '') lacking.push(`${path}/${name}`);
    }
    if (properties !== undefined && additionalProperties !== false) lacking.push(path);
    for (const [name, inner] of Object.entries(schema)) visit(inner, `${path}/${name}`);
  };
  visit(JSON.parse(readFileSync(file, 'utf8')), '');
  expect(lacking).toEqual([]);
});

it('the package exports it', () => {
  const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly exports: object };
  expect(exports).toMatchObject({ './rules.schema.json': `./${file}` });
});
