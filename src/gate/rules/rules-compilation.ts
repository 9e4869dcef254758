import { createOperationPolicies } from '../../core/mcp/operation-policy.ts';
import { operationKinds } from '../../core/mcp/operations.ts';
import { checkPolicy } from '../../core/policy/checked-policy.ts';
import type { PlainPolicy } from '../../core/policy/policy.ts';
import { unmatched } from '../../server/http/exchange.ts';
import { createGateCors } from '../match/cors.ts';
import { createRuleMatcher } from '../match/rule-choice.ts';
import { type RulePath, readRuleHost, readRulePath } from '../match/rule-pattern.ts';
import { type Rule, type RuleAssertion, type RuleMcp, type Rules, trustFix } from '../match/rules.ts';
import { type CompiledDocument, compileDocument, describeError } from './document-compilation.ts';
import { compileWhen, type RuleTarget } from './rule-conditions.ts';
import { mergeParts, type RulesPart } from './rules-set.ts';
import type { Position, Report, ReportProblem } from './rules-text.ts';
import { policyMembers } from './schema/policy-members.ts';
import { hostFix, tokenMembers } from './schema/rule-members.ts';
import { type RuleEntry, type RulesDocument, rulesFix } from './schema/rules-schema.ts';

const noPath: RulePath = { segments: [], hasRest: false, names: new Map() };

/** Compiles documents that match the schema, so that a request only looks up its rule. `undefined` after a problem. */
export function compileRules(parts: readonly RulesPart[], reportTo: Report, needsRules = true): Rules | undefined {
  let isSound = true;
  const reportAt: Report = (position, message) => {
    isSound = false;
    reportTo(position, message);
  };
  const { document, entries, locate } = mergeParts(parts, reportAt);
  const compiled = compileDocument(document, (path, message) => reportAt(locate(path), message));
  if (needsRules && entries.length === 0) reportAt(locate([]), `"rules" is missing. ${rulesFix}`);
  const { identity, assertion } = compiled;
  const headers = [...Object.keys(identity), ...(assertion === undefined ? [] : [assertion.header])];
  const matcher = createRuleMatcher<Rule>();
  const positions = new Map<Rule, Position>();
  const seen = new Map<string, Position>();
  const rules = entries.map(({ entry, at }) => {
    const report: ReportProblem = (path, message) => reportAt(at(path), message);
    const target = compileTarget(entry, report);
    const rule = compileRule(entry, {
      ...{ document, compiled, headers, report },
      target: target ?? { hosts: [], path: noPath },
    });
    const { id } = rule;
    if (id === unmatched) {
      const message = `The id "${id}" is reserved: logs and metrics use it for requests without a rule. Write another id.`;
      report(['id'], message);
    }
    const before = seen.get(id);
    if (before === undefined) seen.set(id, at(['id']));
    else report(['id'], `The id "${id}" is also ${describePlace(before)}. Give each rule a unique id.`);
    if (target === undefined) return rule;
    const rival = matcher.add(rule.pattern, rule);
    const place = rival && positions.get(rival);
    if (rival !== undefined && place !== undefined) {
      const both = `The rule "${id}" and the rule "${rival.id}" ${describePlace(place)}`;
      const message = `${both} match the same requests, and neither is more specific. Change hosts, path or methods of one.`;
      report(['path'], message);
    }
    positions.set(rule, at([]));
    return rule;
  });
  return isSound ? { ...compiled, rules, find: matcher.find } : undefined;
}

function describePlace({ file, line }: Position): string {
  return file === undefined ? `on line ${line}` : `on line ${line} of ${file}`;
}

/** Reads hosts and path. A host that no request can have is a problem, because its `deny` would have no effect. */
function compileTarget({ hosts: texts = [], path: text }: RuleEntry, report: ReportProblem): RuleTarget | undefined {
  const hosts = texts.flatMap((host, index) => {
    const read = readRuleHost(host);
    if (read === undefined) report(['hosts', index], `Item ${index + 1} of "hosts" is not valid. ${hostFix}`);
    return read ?? [];
  });
  const path = readRulePath(text);
  if (typeof path === 'string') {
    report(['path'], path);
    return undefined;
  }
  for (const name of path.names.keys()) {
    if (hosts.some(({ names }) => names.has(name))) {
      report(['path'], `{${name}} is in the path and in a host. Rename one.`);
    }
  }
  return hosts.length < texts.length ? undefined : { hosts, path };
}

interface RuleContext {
  readonly document: RulesDocument;
  readonly compiled: CompiledDocument;
  readonly target: RuleTarget;
  /** Names of the headers that the gate sets. */
  readonly headers: readonly string[];
  readonly report: ReportProblem;
}

function compileRule(entry: RuleEntry, context: RuleContext): Rule {
  const { document, target, report } = context;
  const { id, access = 'token', mode = 'enforce', methods = [], stripPrefix = '', cors } = entry;
  const usesToken = access === 'token' || access === 'optional';
  for (const name of usesToken ? [] : tokenMembers.filter((member) => entry[member] !== undefined)) {
    const message = `A rule with "access": "${access}" validates no token, so "${name}" has no effect. Remove one of the two.`;
    report([name], message);
  }
  const given = Object.entries(entry).filter(
    ([name, value]) => value !== undefined && Object.hasOwn(policyMembers, name),
  );
  const plain = Object.fromEntries(given) as PlainPolicy; // members of a policy
  const bound = usesToken ? compileWhen(entry, plain, context) : { policy: plain, when: undefined };
  try {
    checkPolicy(bound.policy);
  } catch (error) {
    report([], `The requirements of the rule "${id}" are not valid: ${describeError(error)}.`);
  }
  checkForwarding(entry, context);
  const issuers = usesToken ? chooseIssuers(entry, context) : [];
  if (usesToken) checkExchange(entry, issuers, context);
  return {
    ...{ ...entry, access, methods, mode, stripPrefix, hosts: entry.hosts ?? [] },
    ...{ policy: bound.policy, when: bound.when },
    mcp: usesToken ? compileMcp(entry, bound.policy, context) : undefined,
    pattern: { ...target.path, hosts: [...new Set(target.hosts.map(({ pattern }) => pattern))], methods },
    ...{ issuers, exchange: usesToken ? entry.exchange : undefined },
    streams: entry.streams ?? 'end-with-token',
    preflight: entry.preflight ?? document.preflight ?? 'judge',
    credentials: (entry.forward ?? document.forward) === undefined ? 'remove' : 'forward',
    assertion: compileRuleAssertion(entry, context, usesToken),
    strippedSegments: stripPrefix.split('/').length - 1,
    cors: cors && createGateCors(cors),
  };
}

function compileMcp({ mcp, id }: RuleEntry, policy: PlainPolicy, context: RuleContext): RuleMcp | undefined {
  const { document, report } = context;
  if (mcp === undefined) return undefined;
  const { trustHeaders = false, ...maps } = mcp;
  if (trustHeaders && document.upstreams !== undefined) report(['mcp', 'trustHeaders'], trustFix);
  try {
    const given = Object.fromEntries(operationKinds.flatMap((kind) => (maps[kind] ? [[kind, maps[kind]]] : [])));
    return { policies: createOperationPolicies({ ...given, policy }), trustsHeaders: trustHeaders };
  } catch (error) {
    report(['mcp'], `"mcp" of the rule "${id}" is not valid: ${describeError(error)}.`);
    return undefined;
  }
}

function chooseIssuers({ id, issuers: named }: RuleEntry, { compiled, report }: RuleContext): readonly string[] {
  const { issuers, introspections } = compiled;
  const known = [...issuers.keys()];
  if (known.length === 0) {
    const fix = 'Add "issuers", or write "access": "open".';
    report([], `The rule "${id}" requires a token, and the file has no issuers. ${fix}`);
    return [];
  }
  if (named === undefined) {
    if (known.length === 1) return known;
    const fix = `Add "issuers" with any of: ${known.join(', ')}.`;
    report([], `The file has several issuers, and the rule "${id}" does not name its own. ${fix}`);
    return [];
  }
  const urls = new Map<string, string>();
  for (const [index, name] of named.entries()) {
    const issuer = issuers.get(name)?.issuer;
    if (issuer === undefined) {
      report(['issuers', index], describeUnknownIssuer(name, known));
    } else if (urls.has(issuer)) {
      const message = `"${name}" and "${urls.get(issuer)}" are the same issuer, so the rules for its tokens would be ambiguous. Name one of them in each rule.`;
      report(['issuers', index], message);
    } else urls.set(issuer, name);
  }
  if (named.filter((name) => introspections.has(name)).length > 1) {
    const message = `An opaque token does not name its issuer, and several issuers of the rule "${id}" have "introspection". Keep one of them.`;
    report(['issuers'], message);
  }
  return named;
}

/** The caller's token must be of the issuer that exchanges it, and never reach the upstream. */
function checkExchange(
  { id, exchange: name, mode, forward }: RuleEntry,
  issuers: readonly string[],
  { document, compiled, report }: RuleContext,
): void {
  if (name === undefined) return;
  const { exchanges } = compiled;
  const exchange = exchanges.get(name);
  if (exchange === undefined) {
    const known = exchanges.size === 0 ? 'Add "exchanges"' : `Write any of: ${[...exchanges.keys()].join(', ')}`;
    report(['exchange'], `There is no exchange "${name}". ${known}.`);
  } else if (compiled.issuers.has(exchange.issuer) && issuers.some((each) => each !== exchange.issuer)) {
    const message = `The exchange "${name}" takes tokens of "${exchange.issuer}" only, and the rule "${id}" accepts others. Write "issuers": ["${exchange.issuer}"].`;
    report(['exchange'], message);
  }
  if (mode === 'report') {
    report(['mode'], 'In report mode the upstream gets the token of the caller. Remove "mode" or "exchange".');
  }
  if ((forward ?? document.forward) !== undefined) {
    const message = `The upstream of "${id}" gets the new token as Authorization. Remove "forward" or "exchange".`;
    report([forward === undefined ? 'exchange' : 'forward'], message);
  }
}

export function describeUnknownIssuer(name: string, known: readonly string[]): string {
  return `There is no issuer "${name}" in this file. Write any of: ${known.join(', ')}.`;
}

function compileRuleAssertion(
  { assertion: entry, id }: RuleEntry,
  { document, report }: RuleContext,
  usesToken: boolean,
): RuleAssertion | undefined {
  const common = document.assertion;
  if (entry !== undefined && common === undefined) {
    report(['assertion'], `The file has no "assertion" with an issuer and a header. Add it, or remove this member.`);
  }
  if (common === undefined || entry === 'off' || !usesToken) return undefined;
  const audience = entry?.audience ?? common.audience;
  if (audience === undefined) {
    const fix = 'Add "audience" to "assertion", or write "assertion": "off".';
    report(entry === undefined ? [] : ['assertion'], `The rule "${id}" sends an assertion without an audience. ${fix}`);
    return undefined;
  }
  return { audience, isBound: entry?.bind ?? common.bind ?? false };
}

function checkForwarding(
  { access, upstream, stripPrefix, path }: RuleEntry,
  { compiled, target, report }: RuleContext,
): void {
  const names = [...compiled.upstreams.keys()];
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
    const message = `"${stripPrefix}" is not how "${path}" begins. Write its first segments, without * and {name}.`;
    report(['stripPrefix'], message);
  }
}
