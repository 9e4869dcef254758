import { parseUpstream } from '../../http/upstream-address.ts';
import { checkPolicy } from '../../policy/checked-policy.ts';
import type { PlainPolicy } from '../../policy/policy.ts';
import { unmatched } from '../../server/http/exchange.ts';
import type { ClaimPath } from '../../token/grants.ts';
import { createGateCors } from '../cors.ts';
import { defaultIdentity, foldHeaderName, refuseHeaderName } from '../identity/identity-names.ts';
import { readRuleHost } from '../match/rule-host.ts';
import { createRuleMatcher } from '../match/rule-matcher.ts';
import { type RulePath, readRulePath } from '../match/rule-path.ts';
import { type CompiledIssuers, chooseIssuers, compileIssuers, describeError } from './issuers-compilation.ts';
import { compileMcp } from './mcp-compilation.ts';
import { compileConditions, type RuleTarget } from './rule-conditions.ts';
import type { Rule, Rules } from './rules.ts';
import { mergeParts, type RulesPart } from './rules-set.ts';
import { compileAssertion, compileRuleAssertion } from './schema/assertion-members.ts';
import { hostFix, policyMembers, tokenMembers } from './schema/rule-members.ts';
import { type RuleEntry, type RulesDocument, rulesFix } from './schema/rules-schema.ts';
import type { Position, ReportProblem, RulesProblem } from './text/rules-text.ts';

export type RulesResult =
  | { readonly kind: 'rules'; readonly rules: Rules }
  | { readonly kind: 'problems'; readonly problems: readonly RulesProblem[] };

const noPath: RulePath = { segments: [], hasRest: false, names: new Map() };

/** Compiles documents that match the schema, so that a request only looks up its rule. */
export function compileRules(parts: readonly RulesPart[]): RulesResult {
  const problems: RulesProblem[] = [];
  const reportAt = (position: Position, message: string): void => void problems.push({ ...position, message });
  const { document, entries, locate } = mergeParts(parts, reportAt);
  const report: ReportProblem = (path, message) => reportAt(locate(path), message);
  const compiled = compileIssuers(document.issuers ?? {}, report);
  const upstreams = compileUpstreams(document.upstreams ?? {}, report);
  const identity = document.identity ?? defaultIdentity;
  checkIdentity(identity, report);
  const assertion = compileAssertion(document.assertion, identity, report);
  if (entries.length === 0) report([], `"rules" is missing. ${rulesFix}`);
  const matcher = createRuleMatcher<Rule>();
  const positions = new Map<Rule, Position>();
  const seen = new Map<string, Position>();
  const rules = entries.map(({ entry, at }) => {
    const reportRule: ReportProblem = (path, message) => reportAt(at(path), message);
    const target = compileTarget(entry, reportRule);
    const context = { document, compiled, target: target ?? { hosts: [], path: noPath }, report: reportRule };
    const rule = compileRule(entry, context);
    if (rule.id === unmatched) {
      const message = `The id "${unmatched}" is reserved: logs and metrics use it for requests without a rule. Write another id.`;
      reportRule(['id'], message);
    }
    const before = seen.get(rule.id);
    if (before === undefined) seen.set(rule.id, at(['id']));
    else reportRule(['id'], `The id "${rule.id}" is also ${describePlace(before)}. Give each rule a unique id.`);
    if (target === undefined) return rule;
    const rival = matcher.add(rule.pattern, rule);
    const place = rival && positions.get(rival);
    if (rival !== undefined && place !== undefined) {
      reportRule(
        ['path'],
        `The rule "${rule.id}" and the rule "${rival.id}" ${describePlace(place)} match the same requests, and neither is more specific. Change hosts, path or methods of one.`,
      );
    }
    positions.set(rule, at([]));
    return rule;
  });
  if (problems.length > 0) return { kind: 'problems', problems };
  const { issuers, introspections } = compiled;
  const result = { rules, issuers, introspections, upstreams, identity, assertion, resource: document.resource };
  return { kind: 'rules', rules: { ...result, find: matcher.find } };
}

function describePlace({ file, line }: Position): string {
  return file === undefined ? `on line ${line}` : `on line ${line} of ${file}`;
}

function compileUpstreams(entries: Readonly<Record<string, string>>, report: ReportProblem): Rules['upstreams'] {
  for (const [name, address] of Object.entries(entries)) {
    try {
      if (name === 'default') throw new TypeError('"default" is reserved for UPSTREAM. Write another name');
      parseUpstream(address);
    } catch (error) {
      report(['upstreams', name], `The upstream "${name}" cannot be used: ${describeError(error)}.`);
    }
  }
  return new Map(Object.entries(entries));
}

interface RuleContext {
  readonly document: RulesDocument;
  readonly compiled: CompiledIssuers;
  readonly target: RuleTarget;
  readonly report: ReportProblem;
}

function compileRule(entry: RuleEntry, { document, compiled, target, report }: RuleContext): Rule {
  const { id, access = 'token', dpop, mode = 'enforce', methods = [], stripPrefix = '', cors } = entry;
  const usesToken = access === 'token' || access === 'optional';
  const policy = Object.fromEntries(
    policyMembers.flatMap((name) => (entry[name] === undefined ? [] : [[name, entry[name]]])),
  ) as PlainPolicy; // policyMembers are members of a policy
  if (!usesToken) {
    for (const name of tokenMembers.filter((member) => entry[member] !== undefined)) {
      report(
        [name],
        `A rule with "access": "${access}" validates no token, so "${name}" has no effect. Remove one of the two.`,
      );
    }
  }
  const bound = usesToken ? compileConditions(entry, policy, { target, report }) : { policy, bind: undefined };
  try {
    checkPolicy(bound.policy);
  } catch (error) {
    report([], `The requirements of the rule "${id}" are not valid: ${describeError(error)}.`);
  }
  checkForwarding(entry, { document, target, report });
  const { hosts, path } = target;
  return {
    ...{ id, access, methods, dpop, mode, stripPrefix, path: entry.path, hosts: entry.hosts ?? [] },
    ...bound,
    mcp: usesToken ? compileMcp(entry, bound.policy, { isProxy: document.upstreams !== undefined, report }) : undefined,
    pattern: { ...path, hosts: [...new Set(hosts.map(({ pattern }) => pattern))], methods },
    issuers: usesToken ? chooseIssuers(entry, compiled, report) : [],
    encodedSlash: entry.encodedSlash ?? 'refuse',
    preflight: entry.preflight ?? document.preflight ?? 'judge',
    credentials: (entry.forward ?? document.forward) === undefined ? 'remove' : 'forward',
    assertion: compileRuleAssertion(entry.assertion, { common: document.assertion, id, usesToken }, report),
    upstream: entry.upstream,
    strippedSegments: stripPrefix.split('/').length - 1,
    cors: cors && createGateCors({ from: 'rule', origins: cors.origins, credentials: cors.credentials }),
  };
}

function checkForwarding(
  { access, upstream, stripPrefix, path }: RuleEntry,
  { document, target, report }: Pick<RuleContext, 'document' | 'target' | 'report'>,
): void {
  const names = Object.keys(document.upstreams ?? {});
  if (upstream !== undefined && access === 'deny') {
    report(['upstream'], 'A rule with "access": "deny" has no upstream. Remove one of the two.');
  } else if (upstream !== undefined && !names.includes(upstream)) {
    const known = names.length === 0 ? 'Add "upstreams"' : `Write any of: ${names.join(', ')}`;
    report(['upstream'], `There is no upstream "${upstream}". ${known}.`);
  }
  if (stripPrefix === undefined) return;
  const prefix = readRulePath(stripPrefix);
  const isPrefix =
    typeof prefix !== 'string' &&
    !prefix.hasRest &&
    prefix.segments.length === stripPrefix.split('/').length - 1 &&
    prefix.segments.every((segment, index) => typeof segment === 'string' && segment === target.path.segments[index]);
  if (!isPrefix) {
    report(
      ['stripPrefix'],
      `"${stripPrefix}" is not how "${path}" begins. Write its first segments, without * and {name}.`,
    );
  }
}

/** Reads hosts and path. A host that no request can have is a problem, because its `deny` would have no effect. */
function compileTarget({ hosts = [], path }: RuleEntry, report: ReportProblem): RuleTarget | undefined {
  const read = hosts.map((text, index) => {
    const host = readRuleHost(text);
    if (host === undefined) report(['hosts', index], `Item ${index + 1} of "hosts" is not valid. ${hostFix}`);
    return host;
  });
  const pattern = readRulePath(path);
  if (typeof pattern === 'string') report(['path'], pattern);
  const valid = read.filter((host) => host !== undefined);
  if (typeof pattern !== 'string') {
    for (const name of pattern.names.keys()) {
      if (valid.some((host) => host.names.has(name)))
        report(['path'], `{${name}} is in the path and in a host. Rename one.`);
    }
  }
  return typeof pattern === 'string' || valid.length < read.length ? undefined : { hosts: valid, path: pattern };
}

function checkIdentity(identity: Readonly<Record<string, ClaimPath>>, report: ReportProblem): void {
  const folded = new Map<string, string>();
  for (const name of Object.keys(identity)) {
    const refused = refuseHeaderName(name);
    const rival = folded.get(foldHeaderName(name));
    if (refused !== undefined) report(['identity', name], refused);
    if (rival !== undefined)
      report(['identity', name], `"${name}" and "${rival}" are the same header. Keep one of them.`);
    folded.set(foldHeaderName(name), name);
  }
}
