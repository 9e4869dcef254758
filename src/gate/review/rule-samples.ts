import { createReadExternalUrl } from '../../http/external-url.ts';
import { Refused } from '../../refused.ts';
import { createChooseRule } from '../match/rule-choice.ts';
import { readRuleHost } from '../match/rule-host.ts';
import type { Rule, Rules } from '../rules/rules.ts';
import type { RuleEntry } from '../rules/schema/rules-schema.ts';

/** Sample requests for rules; a wildcard becomes a name that no rule contains. */
export interface RuleSamples {
  readonly host: string;
  readonly method: string;
  hostsOf(entry: RuleEntry): readonly string[];
  /** Paths of the rule, with each length of ** that another rule could match. */
  pathsOf(entry: RuleEntry): readonly string[];
  methodsOf(entry: RuleEntry): readonly string[];
  choose(host: string, path: string, method: string): Rule | Refused;
}

export function createRuleSamples(entries: readonly RuleEntry[], rules: Rules): RuleSamples {
  const choose = createChooseRule(rules, createReadExternalUrl({ trust: 'none' }));
  const written = JSON.stringify(entries).toLowerCase();
  const fresh = createFreshName((name) => written.includes(name));
  const depth = entries.reduce((most, { path }) => Math.max(most, path.split('/').length), 0);
  const method = fresh.toUpperCase();
  return {
    host: fresh,
    method,
    hostsOf: ({ hosts = [fresh] }) =>
      hosts.map((host) => readRuleHost(host)?.pattern.replace(/^\*|\{\}/g, fresh) ?? ''),
    pathsOf({ path }) {
      const parts = path.split('/').slice(1);
      const hasRest = parts.at(-1) === '**';
      const fixed = (hasRest ? parts.slice(0, -1) : parts).map((part) =>
        part === '*' || part.startsWith('{') ? fresh : part,
      );
      const lengths = hasRest ? Array.from({ length: depth + 1 }, (_, length) => length) : [0];
      return lengths.map((length) => `/${[...fixed, ...Array.from({ length }, () => fresh)].join('/')}`);
    },
    methodsOf: ({ methods = ['GET', method] }) => methods,
    choose(host, path, called) {
      const headers = { get: (name: string) => (name.toLowerCase() === 'host' ? host : null) };
      const choice = choose(
        { method: called, url: `https://${host}${path}`, target: path, headers },
        { encrypted: true },
      );
      return choice instanceof Refused ? choice : choice.rule;
    },
  };
}

function createFreshName(isTaken: (name: string) => boolean): string {
  let number = 0;
  while (isTaken(`sample${number}`)) number++;
  return `sample${number}`;
}
