import { Refused } from '../../refused.ts';
import type { RuleEntry } from '../rules/schema/rules-schema.ts';
import type { RuleSamples } from './rule-samples.ts';

export interface Unreachable {
  readonly id: string;
  readonly index: number;
  /** Ids of the rules that win its requests; empty if the gate refuses the path. */
  readonly winners: readonly string[];
}

const maxWinners = 3;

/**
 * Finds rules that no request can reach: more specific rules win all their requests, or the gate refuses their path. A rule
 * that wins one of its samples is reachable.
 */
export function findUnreachable(entries: readonly RuleEntry[], samples: RuleSamples): readonly Unreachable[] {
  return entries.flatMap((entry, index) => {
    const winners = findWinners(entry, samples);
    return winners === undefined ? [] : [{ id: entry.id, index, winners }];
  });
}

export function fixUnreachable({ winners }: Unreachable): string {
  return winners.length > 0
    ? 'Remove the rule, or remove one of the more specific rules.'
    : 'A path with %2F needs "encodedSlash": "allow".';
}

export function describeUnreachable({ id, winners }: Unreachable): string {
  const named = winners.slice(0, maxWinners).map((winner) => `"${winner}"`);
  const more = winners.length - named.length;
  const names = more > 0 ? [...named, `${more} more`] : named;
  const why =
    names.length === 0
      ? 'the gate refuses its path'
      : names.length === 1
        ? `the rule ${names[0]} is more specific and takes all of its requests`
        : `the rules ${names.slice(0, -1).join(', ')} and ${names.at(-1)} are more specific and take all of its requests`;
  return `no request can reach the rule "${id}": ${why}`;
}

/** Finds the winners of a rule's sample requests; `undefined` if the rule wins one of them. */
function findWinners(entry: RuleEntry, samples: RuleSamples): readonly string[] | undefined {
  const winners = new Set<string>();
  const paths = samples.pathsOf(entry);
  for (const host of samples.hostsOf(entry)) {
    for (const path of paths) {
      for (const method of samples.methodsOf(entry)) {
        const chosen = samples.choose(host, path, method);
        if (chosen instanceof Refused) continue;
        if (chosen.id === entry.id) return undefined;
        winners.add(chosen.id);
      }
    }
  }
  return [...winners];
}
