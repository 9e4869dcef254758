import { type AuditMemberName, auditMembers } from '../../../src/server/observation/audit/decision.ts';

const text = { type: 'string', maxLength: 256 } as const;
const types = {
  string: text,
  integer: { type: 'integer', minimum: 0 },
  strings: { type: 'array', items: text },
  actor: { type: 'object', properties: { sub: text, iss: text, client_id: text }, additionalProperties: false },
} as const;
/** Values of the members that have few. */
const values: Readonly<Partial<Record<AuditMemberName, readonly string[]>>> = {
  event: ['decision'],
  decision: ['admitted', 'refused', 'would_refuse'],
};

/** JSON schema of a line of the audit trail. */
export const auditSchema: {
  readonly properties: Readonly<Record<string, { readonly type: string }>>;
  readonly required: readonly string[];
  readonly additionalProperties: false;
} = {
  ...{ $schema: 'https://json-schema.org/draft/2020-12/schema', title: 'Line of the audit trail', type: 'object' },
  properties: Object.fromEntries(
    Object.entries(auditMembers).map(([name, { type, meaning }]) => {
      const allowed = values[name as AuditMemberName]; // a key of the table
      return [name, { ...types[type], ...(allowed && { enum: allowed }), description: meaning.replaceAll('`', '') }];
    }),
  ),
  required: ['time', 'event', 'id', 'decision', 'method'],
  additionalProperties: false,
};
