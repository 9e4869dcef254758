import { checkJwksUri } from '../../keys/key-set-options.ts';
import { checkPolicy } from '../../policy/checked-policy.ts';
import type { PlainPolicy } from '../../policy/policy.ts';
import { readIssuerName } from '../../resource-server/issuer-name.ts';
import { readIssuer, type TrustedIssuer } from '../../resource-server/trusted-issuer.ts';
import { unmatched } from '../../server/http/unmatched.ts';
import { foldHeaderName, refuseHeaderName, usualIdentity } from '../identity/identity-names.ts';
import { readRuleHost } from '../match/rule-host.ts';
import { createRuleMatcher } from '../match/rule-matcher.ts';
import { readRulePath } from '../match/rule-path.ts';
import type { Rule, Rules } from './rules.ts';
import { hostFix, type IssuerEntry, type RuleEntry, type RulesDocument } from './rules-schema.ts';
import type { ParsedText, RulesProblem, Step } from './rules-text.ts';

/** Usable rules, or every problem with them. */
export type RulesResult =
  | { readonly kind: 'rules'; readonly rules: Rules }
  | { readonly kind: 'problems'; readonly problems: readonly RulesProblem[] };

type Tell = (path: readonly Step[], message: string) => void;

/** Members that say what a token must have. */
const policyMembers = ['audience', 'scopes', 'anyScope', 'permissions', 'acr', 'maxAge'] as const;
/** Members that mean nothing without a token. */
const tokenMembers = [...policyMembers, 'issuers', 'dpop'] as const;

/** Makes rules out of a document of the right form: once, so that a request only looks up. */
export function compileRules(document: RulesDocument, locate: ParsedText['locate']): RulesResult {
  const problems: RulesProblem[] = [];
  const tell: Tell = (path, message) => void problems.push({ ...locate(path), message });
  const issuers = compileIssuers(document.issuers ?? {}, tell);
  const identity = document.identity ?? usualIdentity;
  checkIdentity(identity, tell);
  const matcher = createRuleMatcher<Rule>();
  const indexes = new Map<Rule, number>();
  const seen = new Map<string, number>();
  const rules = document.rules.map((entry, index) => {
    const at: readonly Step[] = ['rules', index];
    const rule = compileRule(entry, document, issuers, (path, message) => tell([...at, ...path], message));
    if (rule.id === unmatched) {
      const message = `The id "${unmatched}" is reserved: logs and metrics use it for requests without a rule. Write another id.`;
      tell([...at, 'id'], message);
    }
    const before = seen.get(rule.id);
    if (before !== undefined)
      tell(
        [...at, 'id'],
        `The id "${rule.id}" stands on line ${locate(['rules', before, 'id']).line} too. Give each rule its own.`,
      );
    else seen.set(rule.id, index);
    const hosts = compileHosts(entry, (path, message) => tell([...at, ...path], message));
    const pattern = readRulePath(entry.path);
    if (typeof pattern === 'string') tell([...at, 'path'], pattern);
    if (typeof pattern === 'string' || hosts === undefined) return rule;
    const rival = matcher.add({ ...pattern, hosts, methods: entry.methods ?? [] }, rule);
    if (rival !== undefined) {
      tell(
        [...at, 'path'],
        `The rule "${rule.id}" and the rule "${rival.id}" on line ${locate(['rules', indexes.get(rival) ?? 0]).line} are for the same requests, and neither is more specific. Let them differ in hosts, path or methods.`,
      );
    }
    indexes.set(rule, index);
    return rule;
  });
  if (problems.length > 0) return { kind: 'problems', problems };
  return { kind: 'rules', rules: { rules, issuers, identity, resource: document.resource, find: matcher.find } };
}

function compileIssuers(
  entries: Readonly<Record<string, IssuerEntry>>,
  tell: Tell,
): ReadonlyMap<string, TrustedIssuer> {
  const issuers = new Map<string, TrustedIssuer>();
  for (const [name, { issuer, jwksUri, insecure, ...rules }] of Object.entries(entries)) {
    try {
      const place = { ...(jwksUri !== undefined && { jwksUri }), ...(insecure === true && { insecure }) };
      const full = readFullIssuer(issuer, insecure === true);
      const trusted = { issuer: full, ...place, rules } as TrustedIssuer; // what is undefined is absent
      readIssuer(trusted, { options: {} }, refuseKeys);
      if (jwksUri !== undefined) checkJwksUri(jwksUri, insecure === true);
      issuers.set(name, trusted);
    } catch (error) {
      tell(['issuers', name], `The issuer "${name}" cannot be used: ${describe(error)}.`);
      issuers.set(name, { issuer });
    }
  }
  return issuers;
}

/** In full, byte for byte as `iss` has it, also without a slash at the end; or by domain. */
function readFullIssuer(text: string, insecure: boolean): string {
  const isWithoutSlash = /^https?:\/\/[^/?#@\s]+$/.test(text) && (insecure || text.startsWith('https:'));
  return isWithoutSlash && URL.canParse(text) ? text : readIssuerName(text, insecure);
}

/** The check of an issuer needs no keys. */
const noKeys = {
  find: () => undefined,
  generation: 0,
  has: () => false,
  usable: () => false,
  refetch: () => undefined,
};
const refuseKeys = () => noKeys;

function compileRule(
  entry: RuleEntry,
  document: RulesDocument,
  issuers: ReadonlyMap<string, TrustedIssuer>,
  tell: Tell,
): Rule {
  const { id, access = 'token', dpop, mode = 'enforce' } = entry;
  const wantsToken = access === 'token' || access === 'optional';
  const policy = Object.fromEntries(
    policyMembers.flatMap((name) => (entry[name] === undefined ? [] : [[name, entry[name]]])),
  ) as PlainPolicy; // these members of a rule are those of a policy
  if (!wantsToken) {
    for (const name of tokenMembers.filter((member) => entry[member] !== undefined)) {
      tell(
        [name],
        `A rule with "access": "${access}" looks at no token, so "${name}" would do nothing. Take out one of the two.`,
      );
    }
  }
  try {
    checkPolicy(policy);
  } catch (error) {
    tell([], `What the rule "${id}" asks for cannot be used: ${describe(error)}.`);
  }
  return {
    id,
    access,
    hosts: entry.hosts ?? [],
    path: entry.path,
    methods: entry.methods ?? [],
    policy,
    issuers: wantsToken ? chooseIssuers(entry, issuers, tell) : [],
    dpop,
    mode,
    encodedSlash: entry.encodedSlash ?? 'refuse',
    preflight: entry.preflight ?? document.preflight ?? 'judge',
    credentials: (entry.forward ?? document.forward) === undefined ? 'remove' : 'forward',
  };
}

/** Writes hosts as requests have them. A host that no request has is a problem: a `deny` would deny nothing. */
function compileHosts({ hosts = [] }: RuleEntry, tell: Tell): readonly string[] | undefined {
  const read = new Set<string>();
  let isValid = true;
  for (const [index, text] of hosts.entries()) {
    const host = readRuleHost(text);
    isValid &&= host !== undefined;
    if (host === undefined) tell(['hosts', index], `Item ${index + 1} of "hosts" is not valid. ${hostFix}`);
    else read.add(host);
  }
  return isValid ? [...read] : undefined;
}

function chooseIssuers(entry: RuleEntry, issuers: ReadonlyMap<string, TrustedIssuer>, tell: Tell): readonly string[] {
  const names = [...issuers.keys()];
  if (names.length === 0) {
    tell(
      [],
      `The rule "${entry.id}" wants a token, and the file names no issuer. Add "issuers", or write "access": "open".`,
    );
    return [];
  }
  if (entry.issuers === undefined) {
    if (names.length === 1) return names;
    tell(
      [],
      `The file has several issuers, and the rule "${entry.id}" does not say whose tokens it takes. Add "issuers" with any of: ${names.join(', ')}.`,
    );
    return [];
  }
  const urls = new Map<string, string>();
  for (const [index, name] of entry.issuers.entries()) {
    const issuer = issuers.get(name)?.issuer;
    if (issuer === undefined) {
      tell(['issuers', index], `There is no issuer "${name}" in this file. Write any of: ${names.join(', ')}.`);
    } else if (urls.has(issuer)) {
      tell(
        ['issuers', index],
        `"${name}" and "${urls.get(issuer)}" are one issuer, so a token would be judged by either. Name one of them in each rule.`,
      );
    } else {
      urls.set(issuer, name);
    }
  }
  return entry.issuers;
}

function checkIdentity(identity: Readonly<Record<string, string>>, tell: Tell): void {
  const folded = new Map<string, string>();
  for (const name of Object.keys(identity)) {
    const refused = refuseHeaderName(name);
    const rival = folded.get(foldHeaderName(name));
    if (refused !== undefined) tell(['identity', name], refused);
    if (rival !== undefined) tell(['identity', name], `"${name}" and "${rival}" are one header. Keep one of them.`);
    folded.set(foldHeaderName(name), name);
  }
}

/** The library says what is wrong with an option, and names the fix. */
function describe(error: unknown): string {
  if (!(error instanceof TypeError)) throw error;
  return error.message.replace(/\.$/, '');
}
