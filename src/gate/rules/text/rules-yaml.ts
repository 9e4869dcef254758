import type { Document, Node, Pair } from 'yaml';
import {
  createLocate,
  createPositionAt,
  type ParseResult,
  pathKey,
  type RulesProblem,
  type Step,
} from './rules-text.ts';

const missing = 'YAML needs the package yaml. Install it with "npm install yaml", or write the rules in JSON.';

/** Parses a rules file in YAML 1.2: one document, unique keys, no anchors, aliases and tags. */
export async function parseRulesYaml(text: string): Promise<ParseResult> {
  const yaml = await import('yaml').catch(() => undefined);
  const positionAt = createPositionAt(text);
  if (yaml === undefined) return problemsOf([{ line: 1, column: 1, message: missing }]);
  const documents = yaml.parseAllDocuments(text, {
    strict: true,
    uniqueKeys: true,
    stringKeys: true,
    schema: 'core',
    prettyErrors: false,
  });
  const [document, second] = Array.isArray(documents) ? documents : [];
  if (document === undefined)
    return problemsOf([{ line: 1, column: 1, message: 'The file is empty. Write an object with "rules".' }]);
  if (second !== undefined) {
    return problemsOf([
      { ...positionAt(second.range[0]), message: 'The file has more than one document. Keep one, without ---.' },
    ]);
  }
  const problems: RulesProblem[] = [...document.errors, ...document.warnings].map(({ message, pos: [offset] }) => ({
    ...positionAt(offset),
    message: `This is not valid YAML: ${message.split('\n')[0]}. Correct it, or write the rules in JSON.`,
  }));
  const offsets = new Map<string, number>();
  yaml.visit(document, {
    Alias: (_key, node) =>
      void problems.push({
        ...positionAt(node.range?.[0] ?? 0),
        message: 'Aliases (*name) are not accepted. Write the value.',
      }),
    Node: (_key, node) => {
      const { anchor, tag } = node as { readonly anchor?: string; readonly tag?: string }; // an alias has neither
      const place = positionAt(node.range?.[0] ?? 0);
      if (anchor !== undefined)
        problems.push({ ...place, message: 'Anchors (&name) are not accepted. Write the value in each location.' });
      if (tag !== undefined)
        problems.push({ ...place, message: 'Tags (!name) are not accepted. Write the plain value.' });
    },
  });
  if (problems.length > 0) return problemsOf(problems);
  collectOffsets(document, offsets, yaml.isMap, yaml.isSeq);
  return {
    kind: 'text',
    text: { value: document.toJS({ maxAliasCount: 0 }), locate: createLocate(offsets, positionAt) },
  };
}

function problemsOf(problems: readonly RulesProblem[]): ParseResult {
  return { kind: 'problems', problems };
}

type IsMap = typeof import('yaml').isMap;
type IsSeq = typeof import('yaml').isSeq;

function collectOffsets(document: Document.Parsed, offsets: Map<string, number>, isMap: IsMap, isSeq: IsSeq): void {
  const note = (node: unknown, path: readonly Step[]): void => {
    if (isMap(node)) {
      for (const { key, value } of node.items as readonly Pair<Node, Node>[]) {
        const own = [...path, String(key)];
        offsets.set(pathKey(own), key.range?.[0] ?? 0);
        note(value, own);
      }
    } else if (isSeq(node)) {
      for (const [index, item] of (node.items as readonly Node[]).entries()) {
        const own = [...path, index];
        offsets.set(pathKey(own), item.range?.[0] ?? 0);
        note(item, own);
      }
    }
  };
  note(document.contents, []);
}
