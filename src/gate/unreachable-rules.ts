import { AccessError } from '../failures.ts';
import { createReadExternalUrl } from '../http/external-url.ts';
import { type ChooseRule, createChooseRule } from './rule-choice.ts';
import type { Rules } from './rules.ts';
import type { RuleEntry, RulesDocument } from './rules-schema.ts';

/** Schemes of a request: a host with the default port of the one is written without it, and not of the other. */
const schemes = ['https', 'http'] as const;

/**
 * The rules that no request can reach: more specific rules take all that is theirs, or the gate refuses their path. Sample
 * requests are made for each rule, with names that stand in no rule; a rule that gets one of them can be reached.
 */
export function findUnreachable({ rules: entries }: RulesDocument, rules: Rules): readonly string[] {
  const choose = createChooseRule(rules, createReadExternalUrl({ trust: 'none' }));
  const written = JSON.stringify(entries).toLowerCase();
  const fresh = createFreshName((name) => written.includes(name));
  const depth = Math.max(...entries.map(({ path }) => path.split('/').length));
  return entries.filter((entry) => !isReached(entry, choose, { fresh, depth })).map(({ id }) => id);
}

interface Samples {
  /** A name that stands in no rule. */
  readonly fresh: string;
  /** Of the longest path of a rule, or more. */
  readonly depth: number;
}

function isReached(entry: RuleEntry, choose: ChooseRule, samples: Samples): boolean {
  const { id, hosts = [samples.fresh], methods = ['GET', samples.fresh.toUpperCase()] } = entry;
  const paths = samplePaths(entry, samples);
  return hosts
    .map((host) => host.replace(/^\*/, samples.fresh))
    .some((host) =>
      paths.some((path) =>
        methods.some((method) =>
          schemes.some((scheme) => {
            const headers = { get: (name: string) => (name.toLowerCase() === 'host' ? host : null) };
            const request = { method, url: `${scheme}://${host}${path}`, target: path, headers };
            const chosen = choose(request, { encrypted: scheme === 'https' });
            return !(chosen instanceof AccessError) && chosen.id === id;
          }),
        ),
      ),
    );
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
