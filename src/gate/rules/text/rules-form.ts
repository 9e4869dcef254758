import * as v from 'valibot';
import { type RulesDocument, rulesSchema } from '../schema/rules-schema.ts';
import type { ParsedFile, RulesProblem, Step } from './rules-text.ts';

export type FormResult =
  | { readonly kind: 'document'; readonly document: RulesDocument }
  | {
      readonly kind: 'problems';
      readonly problems: readonly RulesProblem[];
      readonly wrong: readonly (readonly Step[])[];
    };

interface AnySchema {
  readonly type: string;
  readonly wrapped?: AnySchema;
  readonly entries?: Readonly<Record<string, AnySchema>>;
  readonly key?: AnySchema;
  readonly value?: AnySchema;
  readonly item?: AnySchema;
  readonly pipe?: readonly { readonly type: string; readonly description?: string }[];
}

const anySchema = rulesSchema as unknown as AnySchema; // any schema has these members, or lacks them

type Issue = v.InferIssue<typeof rulesSchema>;
type PathItem = NonNullable<Issue['path']>[number];

export function checkForm({ value, locate }: ParsedFile): FormResult {
  const lists = findLists(value);
  const problems = lists.map((name) => ({
    ...locate([name]),
    message: `"${name}" is not valid. ${descriptionOf(entriesOf(anySchema)[name])}`,
  }));
  const wrong: (readonly Step[])[] = lists.map((name) => [name]);
  let remaining = without(value, wrong);
  // The schema stops at the first unknown member of an object, so each one is removed from a copy to find the next.
  for (;;) {
    const result = v.safeParse(rulesSchema, remaining);
    if (result.success) {
      return problems.length === 0
        ? { kind: 'document', document: result.output }
        : { kind: 'problems', problems, wrong };
    }
    const unknown = result.issues.filter(isUnknownMember);
    const reported = unknown.length > 0 ? unknown : result.issues;
    for (const issue of reported) problems.push({ ...locate(stepsOf(issue)), message: describeIssue(issue) });
    wrong.push(...reported.map(stepsOf));
    if (unknown.length === 0) return { kind: 'problems', problems, wrong };
    remaining = without(remaining, unknown.map(stepsOf));
  }
}

/** Finds records that contain a list: the schema treats a list as an object with the names 0, 1, 2. */
function findLists(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  const members = Object.entries(entriesOf(anySchema));
  return members
    .filter(([name, schema]) => Object.hasOwn(value, name) && (schema.wrapped ?? schema).type === 'record')
    .map(([name]) => name)
    .filter((name) => Array.isArray(Reflect.get(value, name)));
}

function stepsOf({ path }: Issue): readonly Step[] {
  return ((path ?? []) as readonly PathItem[]).map(({ key }) => key as Step); // documents have only these
}

function isUnknownMember({ type, expected }: Issue): boolean {
  return type === 'strict_object' && expected === 'never';
}

function isMissing({ type, expected, received }: Issue): boolean {
  return type === 'strict_object' && received === 'undefined' && expected?.startsWith('"') === true;
}

function describeIssue(issue: Issue): string {
  const steps = stepsOf(issue);
  const name = String(steps.at(-1) ?? 'The file');
  const schema = schemaAt(issue, isUnknownMember(issue) ? steps.slice(0, -1) : steps);
  const fix = descriptionOf(schema);
  if (isUnknownMember(issue)) {
    return `There is no member "${name}" here. Remove it, or write one of: ${Object.keys(entriesOf(schema)).join(', ')}.`;
  }
  if (isMissing(issue)) return `"${name}" is missing. ${fix}`;
  const what =
    typeof steps.at(-1) === 'number' ? `Item ${Number(steps.at(-1)) + 1} of "${String(steps.at(-2))}"` : `"${name}"`;
  return `${steps.length === 0 ? 'The file does not contain an object.' : `${what} is not valid.`} ${fix}`;
}

function schemaAt(issue: Issue, steps: readonly Step[]): AnySchema {
  let schema = anySchema;
  for (const step of steps) {
    const inner: AnySchema = schema.wrapped ?? schema;
    const next = inner.entries?.[String(step)] ?? inner.value ?? inner.item;
    if (next === undefined) return inner;
    const last = (issue.path as readonly { readonly origin?: string }[] | undefined)?.at(-1);
    schema = inner.key !== undefined && last?.origin === 'key' && step === steps.at(-1) ? inner.key : next;
    // Without a description of its items, the list's description is used.
    if (descriptionOf(schema) === '' && descriptionOf(inner) !== '') return inner;
  }
  return schema;
}

function entriesOf(schema: AnySchema): Readonly<Record<string, AnySchema>> {
  return (schema.wrapped ?? schema).entries ?? {};
}

function descriptionOf(schema: AnySchema | undefined): string {
  const { pipe = [] } = schema?.wrapped ?? schema ?? {};
  return pipe.find(({ type }) => type === 'description')?.description ?? '';
}

function without(value: unknown, paths: readonly (readonly Step[])[]): unknown {
  const copy: unknown = structuredClone(value);
  for (const path of paths) {
    let parent = copy as Record<Step, unknown>; // the path was found in it
    for (const step of path.slice(0, -1)) parent = parent[step] as Record<Step, unknown>;
    delete parent[path.at(-1) ?? ''];
  }
  return copy;
}
