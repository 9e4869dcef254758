import type { Node, Pair } from 'yaml';
import { isInexact } from '../../../core/jose/json.ts';
import {
  createLocate,
  createPositionAt,
  inexactNumber,
  type ParsedFile,
  pathKey,
  type Report,
  type Step,
} from './rules-text.ts';

const missing = 'YAML needs the package yaml. Install it with "npm install yaml", or write the rules in JSON.';

/** Parses a rules file in YAML 1.2: one document, unique keys, no anchors, aliases and tags. */
export async function parseRulesYaml(text: string, report: Report): Promise<ParsedFile | undefined> {
  const yaml = await import('yaml').catch(() => undefined);
  const positionAt = createPositionAt(text);
  let isValid = true;
  const reject = (offset: number, message: string): undefined => {
    isValid = false;
    report(positionAt(offset), message);
  };
  if (yaml === undefined) return reject(0, missing);
  const documents = yaml.parseAllDocuments(text, {
    strict: true,
    uniqueKeys: true,
    stringKeys: true,
    schema: 'core',
    prettyErrors: false,
  });
  const [document, second] = Array.isArray(documents) ? documents : [];
  if (document === undefined) return reject(0, 'The file is empty. Write an object with "rules".');
  if (second !== undefined) {
    return reject(second.range[0], 'The file has more than one document. Keep one, without ---.');
  }
  for (const { message, pos } of [...document.errors, ...document.warnings]) {
    const [first] = message.split('\n');
    reject(pos[0], `This is not valid YAML: ${first}. Correct it, or write the rules in JSON.`);
  }
  yaml.visit(document, {
    Alias: (_key, { range }) => reject(range?.[0] ?? 0, 'Aliases (*name) are not accepted. Write the value.'),
    Node: (_key, node) => {
      const { anchor, tag } = node as { readonly anchor?: string; readonly tag?: string }; // an alias has neither
      const offset = node.range?.[0] ?? 0;
      if (anchor !== undefined) reject(offset, 'Anchors (&name) are not accepted. Write the value in each location.');
      if (tag !== undefined) reject(offset, 'Tags (!name) are not accepted. Write the plain value.');
      if (yaml.isScalar(node) && typeof node.value === 'number' && isInexact(node.source ?? '')) {
        reject(offset, inexactNumber);
      }
    },
  });
  if (!isValid) return undefined;
  const offsets = new Map<string, number>();
  const collect = (node: unknown, path: readonly Step[]): void => {
    const note = (step: Step, place: Node, value: unknown): void => {
      offsets.set(pathKey([...path, step]), place.range?.[0] ?? 0);
      collect(value, [...path, step]);
    };
    if (yaml.isMap(node)) {
      for (const { key, value } of node.items as readonly Pair<Node, Node>[]) note(String(key), key, value);
    } else if (yaml.isSeq(node)) {
      for (const [index, item] of (node.items as readonly Node[]).entries()) note(index, item, item);
    }
  };
  collect(document.contents, []);
  return { value: document.toJS({ maxAliasCount: 0 }), locate: createLocate(() => offsets, positionAt) };
}
