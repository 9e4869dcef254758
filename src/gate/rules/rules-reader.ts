import * as v from 'valibot';
import { isJsonObject } from '../../core/jose/json.ts';
import type { AssertionKeyFiles } from '../identity/assertion-keys.ts';
import { readRulePath } from '../match/rule-pattern.ts';
import { compileRules, describeUnknownIssuer } from './rules-compilation.ts';
import { checkForm } from './rules-form.ts';
import type { RulesPart } from './rules-set.ts';
import {
  type ParsedFile,
  type Path,
  parseRulesText,
  type Report,
  type RulesProblem,
  type RulesText,
} from './rules-text.ts';
import { rulesSchema } from './schema/rules-schema.ts';

export interface RulesFile extends RulesText {
  /** Files of a folder, in the order of their names; `text` is empty then. */
  readonly files?: readonly RulesFile[];
  /** Keys of assertions; absent if no setting names one. */
  readonly keys?: AssertionKeyFiles | undefined;
}

/** Reads the rules of a file, or of a set. Returns either all rules or all problems. */
export function readRules(file: RulesFile) {
  const problems: RulesProblem[] = [];
  const report: Report = (position, message) => void problems.push({ ...position, message });
  const parts = readParts(file, report);
  const isSound = problems.length === 0;
  // One run lists every problem, except those that an unread file could cause.
  const isComplete = parts.length === (file.files ?? [file]).length;
  const rules = isComplete ? compileRules(parts, report, isSound) : undefined;
  const isValid = rules !== undefined && isSound;
  return isValid ? { kind: 'rules' as const, rules } : { kind: 'problems' as const, problems };
}

/** Reads the documents of a file, or of a set. A document with problems is without the parts that have them, or omitted. */
export function readParts({ files, ...single }: RulesFile, report: Report): readonly RulesPart[] {
  const parts: RulesPart[] = [];
  for (const file of files ?? [single]) {
    const inSet = files && { file: file.name };
    const reportHere: Report = (position, message) => report({ ...position, ...inSet }, message);
    const parsed = parseRulesText(file, reportHere);
    if (parsed === undefined) continue;
    const { document, wrong } = checkForm(parsed, reportHere);
    // The issuers of a set are in any of its files.
    if (files === undefined) reportUnknownIssuers(parsed, wrong, reportHere);
    const part = document === undefined ? readSoundPart(parsed, wrong, reportHere) : { ...parsed, document };
    if (part === undefined) continue;
    parts.push({ document: part.document, locate: (path) => ({ ...part.locate(path), ...inSet }) });
  }
  return parts;
}

/**
 * Reads what is sound of a document with an invalid form: without its invalid rules, whose paths are checked here.
 * `undefined` if the other problems could be caused by an invalid part.
 */
function readSoundPart({ value, locate }: ParsedFile, wrong: readonly Path[], report: Report): RulesPart | undefined {
  // Any other top-level member may be a misspelt "issuers".
  const isInParts = wrong.every(([top, next]) => /^(?:rules|issuers)$/.test(`${top}`) && next !== undefined);
  if (!isJsonObject(value) || !isInParts || !Array.isArray(value['rules'])) return undefined;
  const rules: readonly unknown[] = value['rules'];
  const wrongIndexes = listWrongRules(wrong);
  for (const index of wrongIndexes) {
    const rule = rules[index];
    const path = isJsonObject(rule) ? rule['path'] : undefined;
    const message = isReported(wrong, index, 'path') || typeof path !== 'string' ? undefined : readRulePath(path);
    if (typeof message === 'string') report(locate(['rules', index, 'path']), message);
  }
  const soundIndexes = [...rules.keys()].filter((index) => !wrongIndexes.has(index));
  const document = v.safeParse(rulesSchema, {
    ...value,
    ...(isJsonObject(value['issuers']) && { issuers: { ...value['issuers'], ...createStandIns(wrong) } }),
    rules: soundIndexes.length === 0 ? undefined : soundIndexes.map((index) => rules[index]),
  });
  if (!document.success) return undefined;
  return {
    document: document.output,
    locate(path) {
      const [top, index, ...rest] = path;
      return locate(top === 'rules' && typeof index === 'number' ? [top, soundIndexes[index] ?? index, ...rest] : path);
    },
  };
}

/** Reports the unknown issuers of rules with other problems. */
function reportUnknownIssuers({ value, locate }: ParsedFile, wrong: readonly Path[], report: Report): void {
  const { issuers, rules } = isJsonObject(value) ? value : {};
  if (!isJsonObject(issuers) || !Array.isArray(rules)) return;
  for (const index of listWrongRules(wrong)) {
    const named: unknown = rules[index]?.['issuers'];
    if (isReported(wrong, index, 'issuers') || !Array.isArray(named)) continue;
    for (const [at, name] of named.entries()) {
      if (Object.hasOwn(issuers, name)) continue;
      report(locate(['rules', index, 'issuers', at]), describeUnknownIssuer(name, Object.keys(issuers)));
    }
  }
}

function listWrongRules(wrong: readonly Path[]): ReadonlySet<number> {
  return new Set(wrong.flatMap(([top, index]) => (top === 'rules' && typeof index === 'number' ? [index] : [])));
}

/** True if the member, or its entire rule, is invalid. */
function isReported(wrong: readonly Path[], index: number, name: string): boolean {
  return wrong.some(([top, at, member = name]) => top === 'rules' && at === index && member === name);
}

/** Creates replacements for invalid issuers, so that rules may still name them. */
function createStandIns(wrong: readonly Path[]): object {
  const names = wrong.flatMap(([top, name = '']) => (top === 'issuers' ? [name] : []));
  return Object.fromEntries(names.map((name, n) => [name, { issuer: `https://${n}.invalid/`, audience: 'none' }]));
}
