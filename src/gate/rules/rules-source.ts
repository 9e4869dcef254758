import { createHash } from 'node:crypto';
import type { Rules } from './rules.ts';
import { type RulesFile, readRules } from './rules-reader.ts';
import { formatRulesProblems } from './text/rules-text.ts';

/** Origin of the rules: a file that may change, or the settings. */
export type RulesOrigin =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'settings'; readonly file: RulesFile };

export interface RulesFollower {
  /** Prepares the rules without a visible change. Rejects if the rules are not usable. */
  prepare(rules: Rules, file: RulesFile): Promise<PreparedRules>;
}

export interface PreparedRules {
  commit(): void;
}

export interface RulesSource {
  /** Activates the first rules, and later each change. Rejects with `RulesError` if the first are not usable. */
  follow(follower: RulesFollower): Promise<void>;
  close(): void;
}

/** Error for unusable rules. The message lists one problem per line. */
export class RulesError extends Error {
  override readonly name = 'RulesError';
}

export async function parseRules(file: RulesFile): Promise<Rules> {
  const result = await readRules(file);
  if (result.kind === 'rules') {
    return {
      ...result.rules,
      digest: createHash('sha256')
        .update(file.files === undefined ? file.text : JSON.stringify(file.files))
        .digest('hex'),
    };
  }
  throw new RulesError(formatRulesProblems(file.name, result.problems).trimEnd());
}
