import { AccessError } from '../failures.ts';
import { createReadExternalUrl } from '../http/external-url.ts';
import { type ChooseRule, createChooseRule } from './rule-choice.ts';
import { readRuleHost } from './rule-host.ts';
import type { Rules } from './rules.ts';
import { checkForm } from './rules-form.ts';
import { parseRulesText, type RulesFile } from './rules-reader.ts';
import type { RuleEntry, RulesDocument } from './rules-schema.ts';
import type { Place } from './rules-text.ts';

/** A rule that no request can reach. */
export interface Unreachable {
  readonly id: string;
  /** Of the rule in the list of rules. */
  readonly index: number;
  /** The ids of the rules that take its requests; empty if the gate refuses the path. */
  readonly takers: readonly string[];
}

/** Schemes of a request: a host with the default port of the one is written without it, and not of the other. */
const schemes = ['https', 'http'] as const;
/** Rules that are named in full; the others are counted. */
const maxTakers = 3;

/**
 * The rules that no request can reach: more specific rules take all that is theirs, or the gate refuses their path. Sample
 * requests are made for each rule, with names that stand in no rule; a rule that gets one of them can be reached.
 */
export function findUnreachable({ rules: entries }: RulesDocument, rules: Rules): readonly Unreachable[] {
  const choose = createChooseRule(rules, createReadExternalUrl({ trust: 'none' }));
  const written = JSON.stringify(entries).toLowerCase();
  const fresh = createFreshName((name) => written.includes(name));
  const depth = entries.reduce((most, { path }) => Math.max(most, path.split('/').length), 0);
  return entries.flatMap((entry, index) => {
    const takers = findTakers(entry, choose, { fresh, depth });
    return takers === undefined ? [] : [{ id: entry.id, index, takers }];
  });
}

/** The rules of a file that no request can reach, with their places. The file was read as these rules. */
export async function findUnreachableIn(file: RulesFile, rules: Rules): Promise<readonly (Unreachable & Place)[]> {
  const parsed = await parseRulesText(file);
  const form = parsed.kind === 'text' ? checkForm(parsed.text) : parsed;
  if (parsed.kind !== 'text' || form.kind !== 'document') return [];
  return findUnreachable(form.document, rules).map((unreachable) => ({
    ...unreachable,
    ...parsed.text.locate(['rules', unreachable.index]),
  }));
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

interface Samples {
  /** A name that stands in no rule. */
  readonly fresh: string;
  /** Of the longest path of a rule, or more. */
  readonly depth: number;
}

/** The rules that the sample requests of a rule go to instead; `undefined` as soon as one goes to the rule itself. */
function findTakers(entry: RuleEntry, choose: ChooseRule, samples: Samples): readonly string[] | undefined {
  const { id, hosts = [samples.fresh], methods = ['GET', samples.fresh.toUpperCase()] } = entry;
  const paths = samplePaths(entry, samples);
  const takers = new Set<string>();
  for (const pattern of hosts) {
    const host = readRuleHost(pattern)?.replace(/^\*/, samples.fresh) ?? '';
    const headers = { get: (name: string) => (name.toLowerCase() === 'host' ? host : null) };
    for (const path of paths) {
      for (const method of methods) {
        for (const scheme of schemes) {
          const request = { method, url: `${scheme}://${host}${path}`, target: path, headers };
          const chosen = choose(request, { encrypted: scheme === 'https' });
          if (chosen instanceof AccessError) continue;
          if (chosen.id === id) return undefined;
          takers.add(chosen.id);
        }
      }
    }
  }
  return [...takers];
}

/** Paths of a rule: a name of no rule for each *, and every length of ** that another rule could be about. */
function samplePaths({ path }: RuleEntry, { fresh, depth }: Samples): readonly string[] {
  const parts = path.split('/').slice(1);
  const hasRest = parts.at(-1) === '**';
  const fixed = (hasRest ? parts.slice(0, -1) : parts).map((part) => (part === '*' ? fresh : part));
  const lengths = hasRest ? Array.from({ length: depth + 1 }, (_, length) => length) : [0];
  return lengths.map((length) => `/${[...fixed, ...Array.from({ length }, () => fresh)].join('/')}`);
}

function createFreshName(isTaken: (name: string) => boolean): string {
  let number = 0;
  while (isTaken(`sample${number}`)) number++;
  return `sample${number}`;
}
