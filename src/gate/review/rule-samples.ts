import type { AccessError } from '../../failures.ts';
import { createReadExternalUrl } from '../../http/external-url.ts';
import { createChooseRule } from '../match/rule-choice.ts';
import { readRuleHost } from '../match/rule-host.ts';
import type { Rule, Rules } from '../rules/rules.ts';
import type { RuleEntry, RulesDocument } from '../rules/rules-schema.ts';

/** Sample requests for rules: for what a rule leaves open they have names that are in no rule. */
export interface RuleSamples {
  /** A host that is in no rule, and a method of the same kind. */
  readonly host: string;
  readonly method: string;
  hostsOf(entry: RuleEntry): readonly string[];
  /** Each length of ** that another rule could be about. */
  pathsOf(entry: RuleEntry): readonly string[];
  methodsOf(entry: RuleEntry): readonly string[];
  /** Chooses the rule of a sample request. */
  choose(host: string, path: string, method: string): Rule | AccessError;
}

/** Creates sample requests for the rules of a document. */
export function createRuleSamples({ rules: entries }: RulesDocument, rules: Rules): RuleSamples {
  const choose = createChooseRule(rules, createReadExternalUrl({ trust: 'none' }));
  const written = JSON.stringify(entries).toLowerCase();
  const fresh = createFreshName((name) => written.includes(name));
  const depth = entries.reduce((most, { path }) => Math.max(most, path.split('/').length), 0);
  const method = fresh.toUpperCase();
  return {
    host: fresh,
    method,
    hostsOf: ({ hosts = [fresh] }) => hosts.map((host) => readRuleHost(host)?.replace(/^\*/, fresh) ?? ''),
    pathsOf({ path }) {
      const parts = path.split('/').slice(1);
      const hasRest = parts.at(-1) === '**';
      const fixed = (hasRest ? parts.slice(0, -1) : parts).map((part) => (part === '*' ? fresh : part));
      const lengths = hasRest ? Array.from({ length: depth + 1 }, (_, length) => length) : [0];
      return lengths.map((length) => `/${[...fixed, ...Array.from({ length }, () => fresh)].join('/')}`);
    },
    methodsOf: ({ methods = ['GET', method] }) => methods,
    choose(host, path, called) {
      const headers = { get: (name: string) => (name.toLowerCase() === 'host' ? host : null) };
      return choose({ method: called, url: `https://${host}${path}`, target: path, headers }, { encrypted: true });
    },
  };
}

function createFreshName(isTaken: (name: string) => boolean): string {
  let number = 0;
  while (isTaken(`sample${number}`)) number++;
  return `sample${number}`;
}
