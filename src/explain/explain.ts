import { failures } from '../failures.ts';
import type { Connection, ResourceRequest } from '../http/request.ts';
import type { KeySet } from '../keys/key-set.ts';
import { checkPolicy } from '../policy/checked-policy.ts';
import type { Policy } from '../policy/policy.ts';
import { type DryRun, dryRun, type Gathered } from '../resource-server/dry-run.ts';
import { requireOwnServer } from '../resource-server/own-server.ts';
import type { ResourceServer } from '../resource-server/resource-server.ts';
import { stepKinds } from '../resource-server/steps.ts';
import type { Step } from '../resource-server/walk.ts';
import type { RegisteredClaims } from '../token/claims.ts';
import { readFacts, readForce, secretsOf } from './call-facts.ts';
import { findCauses, type NamedCause } from './causes/causes.ts';
import type { CheckVerdict, ExplainedCheck, Explanation, ShownClaim } from './explanation.ts';
import type { Facts, SettingLabels } from './facts.ts';
import type { InputKind } from './input/input.ts';
import { look, type Shown } from './looks.ts';
import { createWithhold, showText, showValue, type Withhold } from './shown-text.ts';
import { formatInstant } from './shown-time.ts';

export type { Certainty } from './causes/cause.ts';
export type { NamedCause } from './causes/causes.ts';
export type { Against, CheckVerdict, DecidingRule, ExplainedCheck, Explanation, ShownClaim } from './explanation.ts';
export type { Setting, SettingLabel, SettingLabels } from './facts.ts';
export type { InputKind } from './input/input.ts';
export { formatExplanation, type TerminalStyle } from './terminal-text.ts';

/** How a call is explained. */
export interface ExplainOptions {
  /** Seconds since the epoch. Default: the clock of the server. */
  readonly at?: number;
  /** Stand in for the keys of every issuer. Default: the keys that the server has now; none are fetched. */
  readonly keys?: KeySet;
  /** How settings are called in a fix. Default: the options of the library. */
  readonly labels?: SettingLabels;
  /** What the request was read from. Default `request`. */
  readonly kind?: InputKind;
  /** Claims that are shown though they may be personal. Default: none. */
  readonly show?: readonly string[];
  /** Whether the domain is set with `https://` in front, which only the service survives. Default `false`. */
  readonly domainHasScheme?: boolean;
}

/**
 * Explains how a request is judged: every check, with what was expected and seen, and the causes of those that fail. It is a
 * dry run: no proof is used up, no key is fetched, and nothing that `judge` keeps is changed. The reason is the reason
 * that `judge` gives. Rejects with `TypeError` for a policy that cannot work, and for a server of another copy of the package.
 *
 * @example
 * const explanation = await explain(server, request, { scopes: ['read:messages'] });
 */
export async function explain<C>(
  server: ResourceServer<RegisteredClaims>,
  request: ResourceRequest,
  policy?: Policy<C>,
  connection?: Connection,
  options: ExplainOptions = {},
): Promise<Explanation> {
  const rules = requireOwnServer('explain', server);
  const now = options.at ?? rules.now();
  const asked = policy ?? {};
  const run = await dryRun(rules, { request, policy: checkPolicy(asked), connection, now, keys: options.keys });
  const force = readForce(run.gathered, asked, options);
  const facts = readFacts(request, run.gathered, { force, now, kind: options.kind ?? 'request' });
  const withhold = createWithhold(secretsOf(request));
  const checks = run.steps.map((step) => explainStep(step, { sight: run.gathered, facts, withhold }));
  const refusal = run.steps.find(({ verdict }) => verdict === 'fail')?.refusal;
  const isRefused = run.verdict === 'refused' && refusal !== undefined;
  return {
    version: 1,
    verdict: run.verdict,
    ...(isRefused && {
      reason: refusal.reason,
      status: server.describeRefusal(refusal, request, { connection }).status,
    }),
    at: formatInstant(Math.floor(now)),
    against: { issuer: force.issuers, audiences: force.audiences, keys: describeKeys(run, options) },
    ...(options.show !== undefined && { shown: showClaims(options.show, { sight: run.gathered, facts, withhold }) }),
    checks,
  };
}

function showClaims(names: readonly string[], { sight, facts, withhold }: StepContext): readonly ShownClaim[] {
  const { claims } = facts.seen;
  return names.map((name) => ({
    claim: withhold(showText(name)),
    value: withhold(showValue(Object.hasOwn(claims, name) ? claims[name] : undefined)),
    verified: sight.isVerified === true,
  }));
}

function describeKeys({ steps }: DryRun, { keys }: ExplainOptions): Explanation['against']['keys'] {
  if (steps.some(({ id, verdict }) => id === 'key' && verdict === 'unknown')) return 'none';
  return keys === undefined ? 'fetched' : 'given';
}

interface StepContext {
  readonly sight: Gathered;
  readonly facts: Facts;
  readonly withhold: Withhold;
}

/** Checks that show the text of claims. */
const claimGroups: ReadonlySet<string> = new Set([
  'issuer',
  'aud',
  'exp',
  'nbf',
  'iat',
  'sub',
  'scope',
  'scopes',
  'any_scope',
]);
const groups: ReadonlyMap<string, string> = new Map(stepKinds.map(({ id, group }) => [id, group]));

/** Why a step that was not made was not. */
const notMade: Readonly<Partial<Record<CheckVerdict, string>>> = {
  blocked: 'cannot be tried: see what failed above',
  unknown: 'only the provider can tell: there are no keys, or the token is opaque',
};

function explainStep({ id, verdict, reason, refusal }: Step, { sight, facts, withhold }: StepContext): ExplainedCheck {
  const group = groups.get(id) ?? id;
  const isFailed = verdict === 'fail' || verdict === 'follows';
  const whyNot = id === 'replay' ? 'not tried: explain never uses up a proof' : notMade[verdict];
  const shown: Shown =
    whyNot === undefined ? look(id, { sight, force: facts.force, now: facts.now, refusal }) : { why: whyNot };
  const { expected, seen, why, setting } = shown;
  const causes = verdict === 'fail' && reason !== undefined ? findCauses(reason, facts) : [];
  const isUnverified = isFailed && seen !== undefined && sight.isVerified !== true && claimGroups.has(group);
  return {
    id,
    group,
    // A dry run cannot tell whether a proof was used before.
    verdict: id === 'replay' ? 'unknown' : verdict,
    ...(isFailed && reason !== undefined && { reason }),
    ...(expected !== undefined && {
      expected: typeof expected === 'string' ? withhold(expected) : expected.map(withhold),
    }),
    ...(seen !== undefined && { seen: withhold(seen) }),
    ...(isUnverified && { verified: false }),
    ...(why !== undefined && why !== '' && { why: withhold(why) }),
    ...(setting !== undefined && { setting }),
    ...(causes.length > 0 && { causes: causes.map((cause) => guard(cause, withhold)) }),
    ...(isFailed && reason !== undefined && { docs: `refusals.md#${reason}` }),
    ...(isFailed && reason !== undefined && causes.length === 0 && { fix: failures[reason].fix }),
  };
}

function guard({ fix, or, note, ...cause }: NamedCause, withhold: Withhold): NamedCause {
  return {
    ...cause,
    fix: withhold(fix),
    ...(or !== undefined && { or: withhold(or) }),
    ...(note !== undefined && { note: withhold(note) }),
  };
}
