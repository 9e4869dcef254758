import { createHash } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { showCode } from '../../core/shown-text.ts';
import { IrregularFile, LargeFile, readRegularFile } from '../../server/lifecycle/file.ts';
import { type Rules, RulesError } from '../match/rules.ts';
import { type RulesFile, readRules } from './rules-reader.ts';
import { formatRulesProblems } from './rules-text.ts';

/** Origin of the rules: a file that may change, or the settings. */
export type RulesOrigin =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'settings'; readonly file: RulesFile };

export interface RulesFollower {
  /** Prepares the rules without a visible change; `commit` makes them active. Rejects if the rules are not usable. */
  prepare(rules: Rules, file: RulesFile): Promise<{ commit(): void }>;
}

export function parseRules(file: RulesFile): Rules {
  const result = readRules(file);
  if (result.kind === 'problems') throw new RulesError(formatRulesProblems(file.name, result.problems).trimEnd());
  const text = file.files === undefined ? file.text : JSON.stringify(file.files);
  return { ...result.rules, digest: createHash('sha256').update(text).digest('hex') };
}

const maxFileBytes = 16 * 1024 * 1024;
const rulesFileName = /^[^.].*\.(?:json|ya?ml)$/i;

/** Reads a rules file, or the rules files of a folder in the order of their names. Throws `RulesError`. */
export function readRulesFiles(path: string): RulesFile {
  if (!isFolder(path)) return readFile(path);
  const files = listFolder(path)
    .filter((name) => !isFolder(name))
    .map((name) => readFile(name));
  if (files.length === 0) throw new RulesError(`${path} contains no rules file. Add a file with .json, .yaml or .yml.`);
  return { name: path, text: '', files };
}

/** Lists a rules file, or a folder and what has the name of a rules file in it, readable or not. */
export function listRulesFiles(path: string): readonly string[] {
  try {
    return isFolder(path) ? [path, ...listFolder(path)] : [path];
  } catch {
    return [path];
  }
}

function listFolder(path: string): readonly string[] {
  const names = attempt(path, () => readdirSync(path).toSorted());
  return names.filter((name) => rulesFileName.test(name)).map((name) => join(path, name));
}

function isFolder(path: string): boolean {
  return attempt(path, () => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true);
}

function readFile(path: string): RulesFile {
  return { name: path, text: attempt(path, () => readRegularFile(path, maxFileBytes).toString('utf8')) };
}

function attempt<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    if (cause instanceof LargeFile) throw new RulesError(`${path} has more than ${maxFileBytes} bytes`, { cause });
    if (cause instanceof IrregularFile) {
      throw new RulesError(`${path} is not a regular file. Name a regular file.`, { cause });
    }
    throw new RulesError(`${path} cannot be read${showCode(cause)}. Name a readable file.`, { cause });
  }
}
