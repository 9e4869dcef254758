import { createReadExternalUrl } from '../../core/http/external-url.ts';
import { Refused } from '../../core/refused.ts';
import { createChooseRule } from '../match/rule-choice.ts';
import { findPlaceholders, readRuleHost } from '../match/rule-pattern.ts';
import type { Rule, Rules } from '../match/rules.ts';
import { type RulesFile, readParts } from '../rules/rules-reader.ts';
import { mergeParts } from '../rules/rules-set.ts';
import type { RuleEntry } from '../rules/schema/rules-schema.ts';

interface FoundWarning {
  readonly kind: 'unreachable' | 'placeholder' | 'upstream' | 'unused';
  readonly index: number;
  readonly seen: string;
  readonly fix: string;
}

/** Finds the warnings of a file or set, in the order of its rules. The file was read as these rules. */
export function findRuleWarnings(file: RulesFile, rules: Rules) {
  const ignore = (): void => {};
  const merged = mergeParts(readParts(file, ignore), ignore);
  const entries = merged.entries.map(({ entry }) => entry);
  const found: readonly FoundWarning[] = [
    ...findUnreachable(entries, rules),
    ...findPlaceholders(entries).map((each) => ({ kind: 'placeholder' as const, ...each })),
    ...findUnusedNames(entries),
    ...(rules.upstreams.size === 0 ? [] : findWithoutUpstream(entries)),
  ];
  return found
    .toSorted((a, b) => a.index - b.index)
    .flatMap(({ index, ...warning }) => {
      const position = merged.entries[index]?.at([]);
      return position === undefined ? [] : [{ ...warning, ...position }];
    });
}

function findWithoutUpstream(entries: readonly RuleEntry[]): readonly FoundWarning[] {
  return entries.flatMap(({ id, access, upstream }, index) => {
    if (access === 'deny' || upstream !== undefined) return [];
    const seen = `the rule "${id}" names no upstream, so it needs UPSTREAM`;
    return [{ kind: 'upstream', index, seen, fix: 'Add "upstream", or set UPSTREAM.' }];
  });
}

/** Finds each `{name}` that no condition reads. */
function findUnusedNames(entries: readonly RuleEntry[]): readonly FoundWarning[] {
  return entries.flatMap(({ id, path, hosts = [], when = '' }, index) => {
    const names = new Set([path, ...hosts].flatMap((text) => text.match(/(?<=\{)[A-Za-z_]\w*(?=\})/g) ?? []));
    return [...names].flatMap((name) => {
      if (new RegExp(`\\bpath\\s*(?:\\.\\s*${name}\\b|(?!\\s*\\.))`).test(when)) return [];
      const fix = `Write *, or read path.${name} in "when".`;
      return [{ kind: 'unused' as const, index, seen: `nothing reads {${name}} of the rule "${id}"`, fix }];
    });
  });
}

interface SampleRequest {
  readonly host: string;
  readonly path: string;
  readonly method: string;
}

/** Creates sample requests for rules; a wildcard becomes a name that no rule contains. */
function createRuleSamples(entries: readonly RuleEntry[], rules: Rules) {
  const chooseRule = createChooseRule(rules, createReadExternalUrl({ trust: 'none' }));
  const written = JSON.stringify(entries).toLowerCase();
  let number = 0;
  while (written.includes(`sample${number}`)) number++;
  const fresh = `sample${number}`;
  const depth = entries.reduce((most, { path }) => Math.max(most, path.split('/').length), 0);
  const listPaths = ({ path }: RuleEntry): readonly string[] => {
    const parts = path.split('/').slice(1);
    const hasRest = parts.at(-1) === '**';
    const fixed = hasRest ? parts.slice(0, -1) : parts;
    const segments = fixed.map((part) => (part === '*' || part.startsWith('{') ? fresh : part));
    const lengths = hasRest ? Array.from({ length: depth + 1 }, (_, length) => length) : [0];
    return lengths.map((length) => `/${[...segments, ...Array.from({ length }, () => fresh)].join('/')}`);
  };
  return {
    /** Requests for a rule, with each length of ** that another rule could match. */
    requestsOf(entry: RuleEntry): readonly SampleRequest[] {
      const { hosts = [fresh], methods = ['GET', fresh.toUpperCase()] } = entry;
      const paths = listPaths(entry);
      return hosts
        .map((host) => readRuleHost(host)?.pattern.replace(/^\*|\{\}/g, fresh) ?? '')
        .flatMap((host) => paths.flatMap((path) => methods.map((method) => ({ host, path, method }))));
    },
    /** Returns the rule of a request; `undefined` if the gate refuses it. */
    choose({ host, path, method }: SampleRequest): Rule | undefined {
      const headers = { get: (name: string) => (name.toLowerCase() === 'host' ? host : null) };
      const request = { method, url: `https://${host}${path}`, target: path, headers };
      const choice = chooseRule(request, { encrypted: true });
      return choice instanceof Refused ? undefined : choice.rule;
    },
  };
}

const maxWinners = 3;

/**
 * Finds rules that no request can reach: more specific rules win all their requests, or the gate refuses their path. A rule
 * that wins one of its samples is reachable.
 */
function findUnreachable(entries: readonly RuleEntry[], rules: Rules): readonly FoundWarning[] {
  const samples = createRuleSamples(entries, rules);
  return entries.flatMap((entry, index) => {
    const { id } = entry;
    const winners = new Set<string>();
    for (const request of samples.requestsOf(entry)) {
      const winner = samples.choose(request)?.id;
      if (winner === id) return [];
      if (winner !== undefined) winners.add(winner);
    }
    const isRefused = winners.size === 0;
    const why = isRefused ? 'the gate refuses its path' : describeWinners([...winners]);
    const encoded = 'A path with %2F needs "encodedSlash": "allow".';
    const fix = isRefused ? encoded : 'Remove the rule, or remove one of the more specific rules.';
    return [{ kind: 'unreachable', index, seen: `no request can reach the rule "${id}": ${why}`, fix }];
  });
}

function describeWinners(ids: readonly string[]): string {
  const more = ids.length > maxWinners ? [`${ids.length - maxWinners} more`] : [];
  const names = [...ids.slice(0, maxWinners).map((id) => `"${id}"`), ...more];
  if (names.length === 1) return `the rule ${names[0]} is more specific and takes all of its requests`;
  const list = `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
  return `the rules ${list} are more specific and take all of its requests`;
}
