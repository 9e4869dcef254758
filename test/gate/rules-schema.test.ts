import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const file = 'schema/rules.schema.json';

it('each member has a description, and no object accepts unknown members', () => {
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
  expect(exports).toMatchObject({ './signals.schema.json': './schema/signals.schema.json' });
});
