import { AccessError } from '../../failures.ts';
import type { RuleEntry, RulesDocument } from '../rules/rules-schema.ts';
import type { RuleSamples } from './rule-samples.ts';

/** A rule that no request can reach. */
export interface Unreachable {
  readonly id: string;
  /** Of the rule in the list of rules. */
  readonly index: number;
  /** The ids of the rules that take its requests; empty if the gate refuses the path. */
  readonly takers: readonly string[];
}

/** Rules that are named in full; the others are counted. */
const maxTakers = 3;

/**
 * The rules that no request can reach: more specific rules take all that is theirs, or the gate refuses their path. Sample
 * requests are made for each rule, with names that stand in no rule; a rule that gets one of them can be reached.
 */
export function findUnreachable({ rules: entries }: RulesDocument, samples: RuleSamples): readonly Unreachable[] {
  return entries.flatMap((entry, index) => {
    const takers = findTakers(entry, samples);
    return takers === undefined ? [] : [{ id: entry.id, index, takers }];
  });
}

/** What to write instead. */
export function fixUnreachable({ takers }: Unreachable): string {
  return takers.length > 0
    ? 'Take the rule out, or take out one of the more specific rules.'
    : 'A path with %2F needs "encodedSlash": "allow".';
}

/** Says which rule it is, and where its requests go. */
export function describeUnreachable({ id, takers }: Unreachable): string {
  const named = takers.slice(0, maxTakers).map((taker) => `"${taker}"`);
  const more = takers.length - named.length;
  const names = more > 0 ? [...named, `${more} more`] : named;
  const why =
    names.length === 0
      ? 'the gate refuses its path'
      : names.length === 1
        ? `the rule ${names[0]} is more specific and takes all of its requests`
        : `the rules ${names.slice(0, -1).join(', ')} and ${names.at(-1)} are more specific and take all of its requests`;
  return `no request can reach the rule "${id}": ${why}`;
}

/** The rules that the sample requests of a rule go to instead; `undefined` as soon as one goes to the rule itself. */
function findTakers(entry: RuleEntry, samples: RuleSamples): readonly string[] | undefined {
  const takers = new Set<string>();
  const paths = samples.pathsOf(entry);
  for (const host of samples.hostsOf(entry)) {
    for (const path of paths) {
      for (const method of samples.methodsOf(entry)) {
        const chosen = samples.choose(host, path, method);
        if (chosen instanceof AccessError) continue;
        if (chosen.id === entry.id) return undefined;
        takers.add(chosen.id);
      }
    }
  }
  return [...takers];
}
