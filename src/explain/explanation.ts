import { findCheck, sectionOf } from '../core/checks.ts';
import { failures, type Reason } from '../core/failures.ts';
import { omitUndefined } from '../core/option-members.ts';
import { showValue } from '../core/shown-text.ts';
import type { ExplainedCheck } from './explained-check.ts';
import type { Repaired } from './input/input.ts';
import { formatInstant } from './shown-time.ts';

/** The members that name a check: of its record, or of an id that only a rule or a log line has. */
export function nameCheck(id: string): Pick<ExplainedCheck, 'id' | 'group' | 'label' | 'section'> {
  const record = findCheck(id);
  if (record === undefined) return { id, group: id };
  return { id, group: record.group ?? id, label: record.label, section: sectionOf(record) };
}

/** Rules that a request was validated by. */
export interface Against {
  /** Trusted issuers. */
  readonly issuer: readonly string[];
  /** Accepted audiences. */
  readonly audiences: readonly string[];
  /** Source of the keys. With `none` the verdict is `undecided`. */
  readonly keys: 'fetched' | 'given' | 'none';
}

/** A claim of `show`. */
export interface ShownClaim {
  /** Name of the claim. */
  readonly claim: string;
  /** Escaped and bounded; `absent` if the token has no such claim. */
  readonly value: string;
  /** `false` if the signature of the token is not verified. */
  readonly verified: boolean;
}

/** The rule of a gate that matches the request. */
export interface DecidingRule {
  /** Id of the rule. */
  readonly id: string;
  /** `report`: the request passes regardless of the verdict. */
  readonly mode: 'enforce' | 'report';
  /** Reason of the refusal that report mode prevented. */
  readonly wouldRefuse?: string;
}

/** Every check of one request. The first check that fails has the reason of the refusal. */
export interface Explanation {
  /** Version of this form. */
  readonly version: 1;
  /** Decision; `undecided` without keys. */
  readonly verdict: 'admitted' | 'refused' | 'undecided';
  /** Reason of a refusal. */
  readonly reason?: string;
  /** HTTP status of a refusal. */
  readonly status?: number;
  /** Time of the evaluation, in UTC. */
  readonly at: string;
  /** Rules of the evaluation. */
  readonly against: Against;
  /** Absent without a gate, or if no rule matches. */
  readonly rule?: DecidingRule;
  /** Repairs of the copied input before the evaluation. */
  readonly repairs?: readonly Repaired[];
  /** Claims of the option `show`. */
  readonly shown?: readonly ShownClaim[];
  /** Command that decides what is undecided here. */
  readonly next?: string;
  /** Every check, in its order. */
  readonly checks: readonly ExplainedCheck[];
}

export const verdictStatuses: Readonly<Record<Explanation['verdict'], number>> = {
  admitted: 0,
  refused: 1,
  undecided: 69,
};

/** Orders explanations. Refused requests with credentials come first: requests for scripts and pictures have none. */
export function rankExplanation({ reason, verdict }: Pick<Explanation, 'reason' | 'verdict'>): number {
  if (verdict === 'refused') return reason === undefined || reason === 'missing_credentials' ? 1 : 0;
  return verdict === 'undecided' ? 2 : 3;
}

/** Rules of an explanation without settings. */
export const nothing: Against = { issuer: [], audiences: [], keys: 'none' };

/** An explanation without rules, for a request at this time. */
export function startExplanation(at: string, checks: readonly ExplainedCheck[] = []): Explanation {
  return { version: 1, verdict: 'admitted', at, against: nothing, checks };
}

/** Explains a request to a route that needs no token. `at`: seconds since the epoch. */
export function explainOpenRoute(path: string, at = Date.now() / 1000): Explanation {
  const why = `the route ${path} is open to all: tokens are ignored`;
  return startExplanation(formatInstant(Math.floor(at)), [{ id: 'rule', group: 'rule', verdict: 'pass', why }]);
}

/** The fix of a reason, without its sentence about the log line: an explanation shows the facts of the line itself. */
export function fixOf(reason: Reason): string {
  return failures[reason].fix.replace(/ The log line (?:has|names|says) [^.]*\./, '');
}

type Refusal = Pick<ExplainedCheck, 'id' | 'group'> & {
  readonly [Fact in 'expected' | 'seen' | 'why' | 'causes']?: ExplainedCheck[Fact] | undefined;
};

/** Explains a refusal by its reason and by facts, without a token. `status` replaces the usual status. */
export function explainReason(
  reason: Reason,
  at: string,
  { id, group, ...facts }: Refusal,
  status: number | undefined = failures[reason].status,
): Explanation {
  const fix = facts.causes === undefined && { fix: fixOf(reason) };
  const failed = { id, group, verdict: 'fail', reason, ...omitUndefined(facts), ...fix } as const;
  const checks = [{ ...failed, docs: `refusals.md#${reason}` }];
  return {
    version: 1,
    verdict: 'refused',
    reason,
    ...(status !== undefined && { status }),
    at,
    against: nothing,
    checks,
  };
}

/** Adds the matching rule to an explanation. In report mode the request passes. */
export function decideBy(
  { id, mode }: Pick<DecidingRule, 'id' | 'mode'>,
  explanation: Explanation,
  remark?: string,
): Explanation {
  const { reason, status, ...rest } = explanation;
  const passes = mode === 'report' && explanation.verdict === 'refused';
  const why = [id, mode === 'report' ? 'in report mode' : '', remark ?? ''].filter(Boolean).join(', ');
  return {
    ...(passes ? { ...rest, verdict: 'admitted' } : explanation),
    rule: { id, mode, ...(passes && reason !== undefined && { wouldRefuse: reason }) },
    checks: [{ id: 'rule', group: 'rule', verdict: 'pass', why }, ...explanation.checks],
  };
}

/** The input has no client certificate, so its checks stay unknown, and the other checks decide. */
export function leaveCertificateOpen(explanation: Explanation): Explanation {
  const isOpen = ({ group, verdict }: ExplainedCheck): boolean =>
    group === 'certificate' && verdict !== 'pass' && verdict !== 'skipped';
  if (!explanation.checks.some(isOpen)) return explanation;
  const checks = explanation.checks.map((check) =>
    isOpen(check) ? leaveOpen(check.id, 'the input has no client certificate') : check,
  );
  const failed = checks.find(({ verdict }) => verdict === 'fail');
  const { reason: before, status: _, ...rest } = explanation;
  if (explanation.verdict !== 'refused' || failed?.reason === undefined)
    return { ...rest, verdict: 'undecided', checks };
  if (failed.reason === before) return { ...explanation, checks };
  const reason = failed.reason as Reason; // each check that fails has one
  const { status } = failures[reason];
  return { ...rest, reason, ...(status !== undefined && { status }), checks };
}

/** Without the requirements of a route, only the token is admitted. */
export function leaveRequirements(explanation: Explanation): Explanation {
  if (explanation.verdict !== 'admitted') return explanation;
  const why = 'scopes and permissions of the route are not known: add --scope or --permission';
  const check = { id: 'requirements', group: 'policy', verdict: 'skipped', why } as const;
  return { ...explanation, checks: [...explanation.checks, check] };
}

/** A check that the input cannot decide. */
export function leaveOpen(id: string, why: string): ExplainedCheck {
  return { ...nameCheck(id), verdict: 'unknown', why };
}

/** An explanation without settings decides nothing. */
export function leaveUndecided({ reason: _, status: __, ...rest }: Explanation, remark = ''): Explanation {
  const next = `${remark}portcullis explain --issuer URL --audience TEXT, or with the settings of the service`;
  return { ...rest, verdict: 'undecided', against: nothing, next, checks: rest.checks.map(leaveUncompared) };
}

const doctor = 'portcullis doctor';
/** Commands that decide what a check leaves open, by its group. Only the service decides every other check. */
const nextCommands: Readonly<Record<string, string>> = {
  ...{ key: doctor, introspection: doctor },
  mcp_operation: 'portcullis explain, with the body of the request: --data of curl',
};

/** Adds the next command to an undecided explanation. */
export function addNext(explanation: Explanation, network: 'online' | 'offline'): Explanation {
  const { verdict, checks, next } = explanation;
  if (verdict !== 'undecided' || next !== undefined) return explanation;
  const open = checks.find((check) => check.verdict === 'unknown' && check.id !== 'replay')?.group ?? '';
  const command =
    nextCommands[open] ?? 'portcullis explain --id ID, with the X-Request-Id of a response of the service';
  const isOffline = network === 'offline' && command === doctor;
  return { ...explanation, next: isOffline ? 'portcullis explain, without --offline' : command };
}

/** Facts of a log line that are the cause of a refusal. */
const causalFacts = [
  ...['revocation', 'by', 'since', 'lifetime', 'longest', 'kind', 'cause', 'hint', 'claim', 'parameter', 'defect'],
  ...['header', 'part', 'issuer', 'exchange', 'error'],
];

/** Lists the facts of a log line or of a decision that are the cause of its refusal. */
export function listCausalFacts(facts: Readonly<Record<string, unknown>>): string | undefined {
  const named = causalFacts.filter((name) => Object.hasOwn(facts, name));
  return named.map((name) => `${name} ${showValue(facts[name])}`).join(', ') || undefined;
}

/** Without settings, checks that compare with one show only the token. */
function leaveUncompared(check: ExplainedCheck): ExplainedCheck {
  const { id, why, seen } = check;
  // An algorithm that fails here is one that no setting can allow.
  if (findCheck(id)?.setting === undefined || (id === 'alg' && check.verdict === 'fail')) return check;
  return leaveOpen(id, `${why ?? seen ?? 'absent'} (not compared: there are no settings)`);
}
