import type { Rules } from './rules.ts';
import { type RulesFile, readRules } from './rules-reader.ts';
import { formatRulesProblems } from './rules-text.ts';

/** Where the gate has its rules from: a file that may change, or the settings. */
export type RulesOrigin =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'settings'; readonly file: RulesFile };

/** What takes over new rules: all of it or nothing. */
export interface RulesFollower {
  /** Makes everything ready, and changes nothing yet. Rejects if the rules cannot be used. */
  prepare(rules: Rules, file: RulesFile): Promise<PreparedRules>;
}

/** Rules that are ready to be used. */
export interface PreparedRules {
  /** Puts them in force, at once. */
  commit(): void;
}

/** Where a process has its rules from. */
export interface RulesSource {
  /** Puts the first rules in force, and from then on each change. Rejects with `RulesError` if the first cannot be used. */
  follow(follower: RulesFollower): Promise<void>;
  close(): void;
}

/** Rules that cannot be used. The message lists every problem, a line each. */
export class RulesError extends Error {
  override readonly name = 'RulesError';
}

/** Reads rules, or throws what is wrong with them. */
export async function parseRules(file: RulesFile): Promise<Rules> {
  const result = await readRules(file);
  if (result.kind === 'rules') return result.rules;
  throw new RulesError(formatRulesProblems(file.name, result.problems).trimEnd());
}
