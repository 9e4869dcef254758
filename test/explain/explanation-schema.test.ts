import { describe, expect, it } from 'vitest';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { explain } from '../../src/explain/explain.ts';
import { createTestIssuer, tokenFlaws } from '../../src/testing/index.ts';
import { explanationSchema } from '../../tools/scripts/docs/explanation-schema.ts';

interface Schema {
  readonly type?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
}

/** The keywords that the schema uses, and no others. */
function fits(value: unknown, schema: Schema): boolean {
  if (schema.anyOf !== undefined) return schema.anyOf.some((each) => fits(value, each));
  if (schema.enum !== undefined) return schema.enum.includes(value);
  if (schema.const !== undefined) return value === schema.const;
  if (schema.type === 'array') return Array.isArray(value) && value.every((item) => fits(item, schema.items ?? {}));
  if (schema.type !== 'object')
    return schema.type === 'integer' ? Number.isInteger(value) : typeof value === schema.type;
  if (typeof value !== 'object' || value === null) return false;
  const { properties = {}, required = [] } = schema;
  const isKnown = ([name, each]: [string, unknown]) =>
    Object.hasOwn(properties, name) && fits(each, properties[name] ?? {});
  return required.every((name) => name in value) && Object.entries(value).every(isKnown);
}

describe('schema of an explanation', () => {
  it('matches explanations of granted and refused requests, and not another shape', async () => {
    const issuer = createTestIssuer();
    const server = createResourceServer({ issuers: [issuer], audience: issuer.audience });
    const tokens = [issuer.token(), ...tokenFlaws.map((flaw) => issuer.flawed(flaw))];
    for (const token of tokens) {
      const request = new Request('https://api.test/', { headers: { authorization: `Bearer ${token}` } });
      const explanation = JSON.parse(JSON.stringify(await explain(server, request, { scopes: ['a'] })));
      expect(fits(explanation, explanationSchema)).toBe(true);
      expect(fits({ ...explanation, more: 1 }, explanationSchema)).toBe(false);
      expect(fits({ ...explanation, verdict: 'maybe' }, explanationSchema)).toBe(false);
    }
  });
});
