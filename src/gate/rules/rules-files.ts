import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { IrregularFile, LargeFile, readRegularFile } from '../../server/lifecycle/file.ts';
import type { RulesFile } from './rules-reader.ts';
import { RulesError } from './rules-source.ts';

const maxFileBytes = 16 * 1024 * 1024;
const rulesFileName = /^[^.].*\.(?:json|ya?ml)$/i;

/** Reads a rules file, or the rules files of a folder in the order of their names. Throws `RulesError`. */
export function readRulesFiles(path: string): RulesFile {
  if (!isFolder(path)) return readFile(path);
  const names = attempt(path, () => readdirSync(path).toSorted());
  const files = names
    .filter((name) => rulesFileName.test(name) && !isFolder(join(path, name)))
    .map((name) => readFile(join(path, name)));
  if (files.length === 0) throw new RulesError(`${path} contains no rules file. Add a file with .json, .yaml or .yml.`);
  return { name: path, text: '', files };
}

export function contentOf({ text, files, keys }: RulesFile): string {
  return JSON.stringify([text, files, keys]);
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
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
    const code = cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : '';
    throw new RulesError(`${path} cannot be read${code}. Name a readable file.`, { cause });
  }
}
