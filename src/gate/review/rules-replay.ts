import { failures, type Reason } from '../../core/failures.ts';
import { createReadExternalUrl } from '../../core/http/external-url.ts';
import { isJsonObject, type JsonObject } from '../../core/jose/json.ts';
import { checkPolicy } from '../../core/policy/checked-policy.ts';
import type { PlainPolicy } from '../../core/policy/policy.ts';
import { Refused } from '../../core/refused.ts';
import { unmatched } from '../../server/http/exchange.ts';
import { cutLengths } from '../../server/observation/audit/audit-line.ts';
import { createChooseRule, findDenial } from '../match/rule-choice.ts';
import type { Rule, Rules } from '../match/rules.ts';
import { policyMembers } from '../rules/schema/policy-members.ts';
import { type RuleMember, ruleMembers } from '../rules/schema/rule-members.ts';

/** A recorded decision: a line of an audit trail. Each string is as recorded; its time is in milliseconds since the epoch. */
export type RecordedDecision = Readonly<NonNullable<ReturnType<typeof readRecorded>>>;

/** The decision that the new rules make, or the name of an unrecorded fact that it depends on. */
export type Replayed =
  | { readonly kind: 'same' }
  | {
      readonly kind: 'changed';
      readonly rule: string;
      readonly decision: RecordedDecision['decision'];
      readonly reason: Reason | undefined;
      /** Scopes that the token lacks: all of them, or for `no_accepted_scope` one of them. */
      readonly needs: readonly string[];
    }
  | { readonly kind: 'unknown'; readonly fact: string };

/** Reads a line; `undefined` if it does not record a decision. */
export function readRecorded(text: string) {
  let line: unknown;
  try {
    line = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isJsonObject(line) || line['event'] !== 'decision') return undefined;
  const { decision, reason, method, time: written } = line;
  const time = typeof written === 'string' ? Date.parse(written) : Number.NaN;
  if (decision !== 'admitted' && decision !== 'refused' && decision !== 'would_refuse') return undefined;
  if (Number.isNaN(time) || typeof method !== 'string') return undefined;
  return { line, time, decision, method, reason: typeof reason === 'string' ? reason : undefined };
}

/** Reasons that no rule changes: before a rule is chosen, and after it has admitted. */
const fixedReasons: ReadonlySet<string | undefined> = new Set<Reason>([
  'bad_host_header',
  'bad_forwarded_header',
  'unmet_expectation',
  'ambiguous_request',
  'untrusted_peer',
  'upstream_unavailable',
  'upstream_overloaded',
  'upstream_timeout',
  'upload_timeout',
  'unexpected',
]);

/** Reasons of a policy and of the exchange after it: every check of the token and its proof has passed. */
const policyReasons: ReadonlySet<string | undefined> = new Set<Reason>([
  'insufficient_scope',
  'no_accepted_scope',
  'missing_permission',
  'actor_required',
  'actor_not_allowed',
  'condition_not_met',
  'unaccepted_acr',
  'missing_auth_time',
  'authentication_too_old',
  'no_operation_policy',
  'exchange_refused',
  'exchange_unavailable',
]);

/** The unrecorded fact that decides whether another rule would refuse for the same reason. */
const factsOfReasons: Readonly<Record<string, string>> = {
  missing_credentials: 'credentials',
  bearer_not_accepted: 'token',
  dpop_not_accepted: 'token',
  invalid_issuer: 'iss',
  invalid_audience: 'aud',
  unaccepted_client: 'client_id',
};

type Outcome = Reason | 'admitted' | { readonly fact: string };

/** Creates the function that decides recorded requests by rules. */
export function createReplay(rules: Rules): (recorded: RecordedDecision) => Replayed {
  const chooseRule = createChooseRule(rules, createReadExternalUrl({ trust: 'none' }));
  const readsPreflights = rules.rules.some(({ cors, preflight }) => cors !== undefined || preflight === 'allow');

  const choose = (recorded: RecordedDecision): Rule | Reason | { readonly fact: string } => {
    const { line, method } = recorded;
    const { host, path } = line;
    if (typeof path !== 'string' || isCut(path, line) || path.includes('***')) return { fact: 'path' };
    if (typeof host !== 'string' || isCut(host, line)) return { fact: 'host' };
    if (method === 'OPTIONS' && readsPreflights) return { fact: 'access-control-request-method' };
    // An origin without its default port was recorded.
    const scheme = host.endsWith(':80') ? 'https' : 'http';
    const headers = { get: (name: string) => (name === 'host' ? host : null) };
    const request = { method, url: `${scheme}://${host}${path}`, target: path, headers };
    const chosen = chooseRule(request, { encrypted: scheme === 'https' });
    return chosen instanceof Refused ? chosen.reason : chosen.rule;
  };

  return (recorded) => {
    const { line, decision, reason } = recorded;
    if (line['rules'] !== undefined && line['rules'] === rules.digest) return same;
    if (decision === 'refused' && fixedReasons.has(reason)) return same;
    const rule = choose(recorded);
    if (typeof rule === 'object' && 'fact' in rule) return { kind: 'unknown', fact: rule.fact };
    const outcome = typeof rule === 'string' ? rule : decideBy(rule, recorded, rules);
    if (typeof outcome === 'object') return { kind: 'unknown', fact: outcome.fact };
    const isReport = typeof rule === 'object' && rule.mode === 'report';
    const next = outcome === 'admitted' ? 'admitted' : isReport ? 'would_refuse' : 'refused';
    if (next === decision) return same;
    const { scopes = [], anyScope = [], implies = {} } = typeof rule === 'object' ? rule.policy : {};
    const isMissing = (scope: string): boolean => judgePolicy({ scopes: [scope], implies }, line) !== 'admitted';
    const lacking = outcome === 'insufficient_scope' ? scopes.filter(isMissing) : [];
    return {
      kind: 'changed',
      rule: typeof rule === 'string' ? unmatched : rule.id,
      decision: next,
      reason: outcome === 'admitted' ? undefined : outcome,
      needs: outcome === 'no_accepted_scope' ? anyScope : lacking,
    };
  };
}

const same: Replayed = { kind: 'same' };

function decideBy(rule: Rule, recorded: RecordedDecision, rules: Rules): Outcome {
  const { access } = rule;
  const unrecorded = findUnrecorded(rule, 'rule');
  if (access === 'open') return unrecorded ?? 'admitted';
  const { line, decision, reason } = recorded;
  if (findDenial(rule, line.method) !== undefined) return 'denied_by_rule';
  const { issuer, entry, scheme } = line;
  if (issuer === undefined || (decision !== 'admitted' && !policyReasons.has(reason))) {
    const isRefusal = reason !== undefined && Object.hasOwn(failures, reason);
    // The request of an open rule may have had a token, and a refused path or rule says nothing about it.
    if (!isRefusal || failuresOfRules.has(reason)) return { fact: 'token' };
    if (reason === 'missing_credentials' && access === 'token') return reason;
    // A rule in report mode records no proof as used.
    const isOfReplay = rule.mode === 'report' && /^(?:proof_replayed|replay_store_)/.test(reason);
    const fact = isOfReplay ? 'proof' : factsOfReasons[reason];
    return fact === undefined ? (reason as Reason) : { fact }; // it has a row
  }
  if (scheme === 'Bearer' && rule.dpop === 'required') return 'bearer_not_accepted';
  if (scheme === 'DPoP' && rule.dpop === 'off') return 'dpop_not_accepted';
  const named = rule.issuers.find((name) => name === entry);
  if (named === undefined || rules.issuers.get(named)?.issuer !== issuer) {
    const isTrusted = rule.issuers.some((name) => rules.issuers.get(name)?.issuer === issuer);
    return isTrusted ? { fact: 'aud' } : 'invalid_issuer';
  }
  const judged = judgePolicy(rule.policy, line);
  if (typeof judged === 'string' && judged !== 'admitted') return judged;
  if (rule.when !== undefined) return { fact: /\btoken\s*\.\s*(\w+)/.exec(rule.when.text)?.[1] ?? 'condition' };
  if (unrecorded !== undefined) return unrecorded;
  // The proof of a refused request was not recorded as used.
  return judged === 'admitted' && decision !== 'admitted' && scheme === 'DPoP' ? { fact: 'proof' } : judged;
}

/** Reasons of rules themselves. */
const failuresOfRules: ReadonlySet<string> = new Set<Reason>(['no_rule', 'denied_by_rule', 'ambiguous_path']);

/** Members of rules that depend on a fact which no line has. */
const unrecordedMembers = Object.entries<RuleMember>(ruleMembers).flatMap(([name, { unrecorded: fact }]) =>
  fact === undefined ? [] : [{ name, fact, isOfPolicy: Object.hasOwn(policyMembers, name) }],
);

/** Returns the first unrecorded fact that a policy, or a rule without its policy, depends on. */
function findUnrecorded(written: object, kind: 'policy' | 'rule'): { readonly fact: string } | undefined {
  return unrecordedMembers.find(
    ({ name, isOfPolicy }) => isOfPolicy === (kind === 'policy') && Reflect.get(written, name) !== undefined,
  );
}

/** Not read by checks of scopes. */
const issuer = { expTolerance: 0, nbfTolerance: 0, permissionsClaim: 'permissions' };

/** Evaluates a policy by the recorded facts. A refusal that is certain outweighs what is unknown. */
function judgePolicy(policy: PlainPolicy, line: JsonObject): Outcome {
  const { scopes, anyScope, implies = {}, actor } = policy;
  let outcome: Outcome = 'admitted';
  for (const part of [scopes && { scopes, implies }, anyScope && { anyScope, implies }]) {
    if (part === undefined) continue;
    const granted = Array.isArray(line['scopes']) ? line['scopes'].map(String) : [];
    const token = { claims: { iss: '', exp: 0 }, scopes: new Set(granted), verifiedBy: { issuer } };
    const verdict = checkPolicy(part).judge({ token, now: 0 });
    if (!(verdict instanceof Refused)) continue;
    if (line['scopes_omitted'] === undefined && !granted.some((scope) => isCut(scope, line))) return verdict.reason;
    outcome = { fact: 'scopes' };
  }
  if (actor !== undefined) {
    // Without an identity, the line does not say that there is none.
    const isKnown = line['sub'] !== undefined || line['client_id'] !== undefined;
    const found = isJsonObject(line['actor']) ? line['actor']['sub'] : undefined;
    if (isKnown && actor === 'forbidden' && line['actor'] !== undefined) return 'actor_not_allowed';
    if (isKnown && actor !== 'forbidden' && found === undefined) return 'actor_required';
    if (!isKnown || typeof actor === 'object') outcome = { fact: 'act' };
  }
  return outcome === 'admitted' ? (findUnrecorded(policy, 'policy') ?? outcome) : outcome;
}

/** Members of a fixed length. */
const uncutMembers: ReadonlySet<string> = new Set(['time', 'jti_hash', 'rules']);

/** Reports whether a recorded value may have been cut: it has a length of the limits, and no value of the line is longer. */
function isCut(value: string, line: JsonObject): boolean {
  if (!cutLengths.has(value.length)) return false;
  for (const [name, each] of Object.entries(line)) {
    if (!uncutMembers.has(name) && typeof each === 'string' && each.length > value.length) return false;
  }
  return true;
}
