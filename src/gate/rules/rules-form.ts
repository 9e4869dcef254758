import * as v from 'valibot';
import { isJsonObject } from '../../core/jose/json.ts';
import { findLikeliest } from '../../core/likeliest-name.ts';
import type { ParsedFile, Path, Report, Step } from './rules-text.ts';
import { type RulesDocument, rulesSchema } from './schema/rules-schema.ts';

interface AnySchema {
  readonly type: string;
  readonly wrapped?: AnySchema;
  readonly entries?: Readonly<Record<string, AnySchema>>;
  readonly key?: AnySchema;
  readonly value?: AnySchema;
  readonly item?: AnySchema;
  readonly options?: readonly AnySchema[];
  readonly pipe?: readonly { readonly type: string; readonly description?: string }[];
}

const anySchema = rulesSchema as unknown as AnySchema; // any schema has these members, or lacks them
const recordNames = Object.entries(entriesOf(anySchema))
  .filter(([, schema]) => unwrap(schema).type === 'record')
  .map(([name]) => name);

/** Members that earlier versions had, by the number of steps to them, with their replacement. */
const removedMembers: Readonly<Record<string, string>> = {
  '3 claims': 'Write "when", as in "token.tenant == path.tenant": UPGRADE.md shows each form.',
  '1 scope': 'Remove it. The code owners of the repository decide who may write which file.',
};

type Issue = v.InferIssue<typeof rulesSchema>;

/** Returns the document, `undefined` if it is not valid, and the paths of the members that are not. */
export function checkForm(
  { value, locate }: ParsedFile,
  report: Report,
): { readonly document?: RulesDocument; readonly wrong: readonly Path[] } {
  // The schema treats an array as an object with the names 0, 1, 2.
  const lists = isJsonObject(value) ? recordNames.filter((name) => Array.isArray(value[name])) : [];
  for (const name of lists) {
    report(locate([name]), `"${name}" is not valid. ${descriptionOf(entriesOf(anySchema)[name])}`);
  }
  const wrong: Path[] = lists.map((name) => [name]);
  // The schema stops at the first unknown member of an object, so each one is removed from a copy to find the next.
  for (;;) {
    const rest = without(value, wrong);
    const result = v.safeParse(rulesSchema, rest);
    if (result.success) {
      const omitted = findOmitted(rest, result.output);
      for (const path of omitted) report(locate(path), `"${path.at(-1)}" cannot be a name here. Write another one.`);
      wrong.push(...omitted);
      return wrong.length === 0 ? { document: result.output, wrong } : { wrong };
    }
    const unknown = result.issues.filter(isUnknownMember);
    const reported = unknown.length > 0 ? unknown : result.issues;
    for (const issue of reported) report(locate(stepsOf(issue)), describeIssue(issue));
    wrong.push(...reported.map(stepsOf));
    if (unknown.length === 0) return { wrong };
  }
}

/** Finds members that the schema has dropped: valibot does so without an issue, such as with an entry "prototype". */
function findOmitted(value: unknown, output: unknown, path: Path = []): readonly Path[] {
  return Object.entries(typeof value === 'object' ? (value ?? {}) : {}).flatMap(([name, each]) => {
    const steps = [...path, Array.isArray(value) ? Number(name) : name];
    return Object.hasOwn(Object(output), name) ? findOmitted(each, Object(output)[name], steps) : [steps];
  });
}

/** Reads the steps of an issue of valibot: keys of documents are strings and numbers. */
export function stepsOf({ path }: v.BaseIssue<unknown>): Path {
  return (path ?? []).map(({ key }) => key as Step);
}

function isUnknownMember({ type, expected }: Issue): boolean {
  return type === 'strict_object' && expected === 'never';
}

function isMissing({ type, expected, received }: Issue): boolean {
  return type === 'strict_object' && received === 'undefined' && expected?.startsWith('"') === true;
}

function describeIssue(issue: Issue): string {
  const steps = stepsOf(issue);
  const [parent, last = 'The file'] = [steps.at(-2), steps.at(-1)];
  if (isUnknownMember(issue)) {
    const removed = removedMembers[`${steps.length} ${last}`];
    if (removed !== undefined) return `"${last}" was removed. ${removed}`;
    const known = Object.keys(entriesOf(schemaAt(issue, steps.slice(0, -1))));
    const meant = findLikeliest(`${last}`, known, 4);
    const fix = meant === undefined ? `Remove it, or write one of: ${known.join(', ')}.` : `Did you mean ${meant}?`;
    return `There is no member "${last}" here. ${fix}`;
  }
  const fix = descriptionOf(schemaAt(issue, steps));
  if (isMissing(issue)) return `"${last}" is missing. ${fix}`;
  if (steps.length === 0) return `The file does not contain an object. ${fix}`;
  const what = typeof last === 'number' ? `Item ${last + 1} of "${parent}"` : `"${last}"`;
  return `${what} is not valid. ${fix}`;
}

function schemaAt({ path }: Issue, steps: Path): AnySchema {
  const isOfKey = path?.at(-1)?.origin === 'key';
  let schema = anySchema;
  for (const step of steps) {
    const inner = unwrap(schema);
    const next = entriesOf(inner)[String(step)] ?? inner.value ?? inner.item;
    if (next === undefined) return inner;
    schema = inner.key !== undefined && isOfKey && step === steps.at(-1) ? inner.key : next;
    // Without a description of its items, the list's description is used.
    if (descriptionOf(schema) === '' && descriptionOf(inner) !== '') return inner;
  }
  return schema;
}

function unwrap(schema: AnySchema): AnySchema {
  return schema.wrapped ?? schema;
}

function entriesOf(schema: AnySchema): Readonly<Record<string, AnySchema>> {
  const { entries, options } = unwrap(schema);
  return entries ?? options?.find((each) => each.entries !== undefined)?.entries ?? {};
}

function descriptionOf(schema: AnySchema | undefined): string {
  const pipe = (schema && unwrap(schema).pipe) ?? [];
  return pipe.find(({ type }) => type === 'description')?.description ?? '';
}

function without(value: unknown, paths: readonly Path[]): unknown {
  const copy: unknown = structuredClone(value);
  for (const path of paths) {
    let parent = copy as Record<Step, unknown>; // the path was found in it
    for (const step of path.slice(0, -1)) parent = parent[step] as Record<Step, unknown>;
    delete parent[path.at(-1) ?? ''];
  }
  return copy;
}
