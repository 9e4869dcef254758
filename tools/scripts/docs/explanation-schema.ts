const text = { type: 'string' } as const;
const texts = { type: 'array', items: text } as const;

const cause = {
  type: 'object',
  required: ['id', 'certainty', 'fix'],
  additionalProperties: false,
  properties: { id: text, certainty: { enum: ['certain', 'likely'] }, fix: text, or: text, note: text },
} as const;

const check = {
  type: 'object',
  required: ['id', 'group', 'verdict'],
  additionalProperties: false,
  properties: {
    id: text,
    group: text,
    label: text,
    section: text,
    verdict: { enum: ['pass', 'fail', 'follows', 'blocked', 'skipped', 'unknown'] },
    reason: text,
    expected: { anyOf: [text, texts] },
    seen: text,
    verified: { type: 'boolean' },
    why: text,
    setting: text,
    causes: { type: 'array', items: cause },
    fix: text,
    docs: text,
  },
} as const;

/** JSON Schema (2020-12) of what `portcullis explain --json` prints. */
export const explanationSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Explanation',
  type: 'object',
  required: ['version', 'verdict', 'at', 'against', 'checks'],
  additionalProperties: false,
  properties: {
    version: { const: 1 },
    verdict: { enum: ['admitted', 'refused', 'undecided'] },
    reason: text,
    status: { type: 'integer' },
    at: text,
    against: {
      type: 'object',
      required: ['issuer', 'audiences', 'keys'],
      additionalProperties: false,
      properties: { issuer: texts, audiences: texts, keys: { enum: ['fetched', 'given', 'none'] } },
    },
    repairs: {
      type: 'array',
      items: {
        type: 'object',
        required: ['id', 'note'],
        additionalProperties: false,
        properties: { id: text, note: text },
      },
    },
    rule: {
      type: 'object',
      required: ['id', 'mode'],
      additionalProperties: false,
      properties: { id: text, mode: { enum: ['enforce', 'report'] }, wouldRefuse: text },
    },
    shown: {
      type: 'array',
      items: {
        type: 'object',
        required: ['claim', 'value', 'verified'],
        additionalProperties: false,
        properties: { claim: text, value: text, verified: { type: 'boolean' } },
      },
    },
    next: text,
    checks: { type: 'array', items: check },
  },
} as const;
