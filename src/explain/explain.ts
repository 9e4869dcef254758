import { findCheck } from '../core/checks.ts';
import type { Connection, ResourceRequest } from '../core/http/request.ts';
import type { KeySet } from '../core/keys/key-set.ts';
import { checkPolicy } from '../core/policy/checked-policy.ts';
import type { Policy } from '../core/policy/policy.ts';
import { type DryRun, dryRun, type Gathered } from '../core/resource-server/dry-run.ts';
import { requireOwnServer } from '../core/resource-server/own-server.ts';
import type { ResourceServer } from '../core/resource-server/resource-server.ts';
import type { Disguise } from '../core/shown-comparison.ts';
import { createWithhold, showText, showValue, type Withhold } from '../core/shown-text.ts';
import type { RegisteredClaims } from '../core/token/claims.ts';
import type { Step } from '../core/walk.ts';
import { findCauses, nameCauses } from './causes/causes.ts';
import type { CheckVerdict, ExplainedCheck, NamedCause } from './explained-check.ts';
import { type Explanation, fixOf, nameCheck, type ShownClaim } from './explanation.ts';
import { type Facts, readFacts, readForce, type SettingLabels, secretsOf } from './facts.ts';
import type { InputKind } from './input/input.ts';
import { type Shown, showStep } from './looks.ts';
import { formatInstant } from './shown-time.ts';
import { passesTrial, type TriedRun } from './trial.ts';

export type { Certainty, CheckVerdict, ExplainedCheck, NamedCause } from './explained-check.ts';
export type { Against, DecidingRule, Explanation, ShownClaim } from './explanation.ts';
export type { Setting, SettingLabel, SettingLabels } from './facts.ts';
export type { InputKind } from './input/input.ts';
export { formatExplanation, type TerminalStyle } from './terminal-text.ts';

/** Options of {@link explain}. */
export interface ExplainOptions {
  /** Seconds since the epoch. Default: the clock of the server. */
  readonly at?: number;
  /** Replace the keys of every issuer. Default: the cached keys of the server; none are fetched. */
  readonly keys?: KeySet;
  /** Names of settings in a fix. Default: the options of the library. */
  readonly labels?: SettingLabels;
  /** `ask`: the introspection endpoint is queried. Default: a token that needs it is undecided. */
  readonly introspection?: 'ask';
  /** Form of the input. Default `request`. */
  readonly kind?: InputKind;
  /** Claims that are shown although they may be personal. Default: none. */
  readonly show?: readonly string[];
  /** True if the domain is set with the prefix `https://`. Default `false`. */
  readonly domainHasScheme?: boolean;
  /** Hides or shows values that a condition of the gate has read. Default: each is hashed under a key of this process. */
  readonly disguise?: Disguise | undefined;
}

/**
 * Explains a request: every check with expected and seen values, and the causes of failures. It is a dry run: no proof is
 * used up, no key is fetched, no state of `judge` changes. The reason is the reason of `judge`. Rejects with `TypeError`
 * for an invalid policy, and for a server of another copy of the package.
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
  const call = {
    request,
    policy: checkPolicy(asked),
    connection,
    now,
    keys: options.keys,
    introspection: options.introspection,
  };
  const run = await dryRun(rules, call);
  const force = readForce(run.gathered, asked, options);
  const facts = readFacts(request, run.gathered, { force, now, kind: options.kind ?? 'request' });
  const withhold = createWithhold(secretsOf(request));
  const tried: TriedRun = { rules, call, steps: run.steps };
  const checks: ExplainedCheck[] = [];
  for (const step of run.steps) checks.push(await explainStep(step, { sight: run.gathered, facts, withhold, tried }));
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

function showClaims(
  names: readonly string[],
  { sight, facts, withhold }: Omit<StepContext, 'tried'>,
): readonly ShownClaim[] {
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
  readonly tried: TriedRun;
}

/** Steps that only the running service can make, whatever their verdict. */
const ofService: Readonly<Record<string, string>> = {
  replay: 'not tried: explain never uses up a proof',
  revocation: 'only the service knows its cutoffs: query it by explain --id, or explain --admin',
};
const notMade: Readonly<Partial<Record<CheckVerdict, string>>> = {
  blocked: 'cannot be tried: it needs a check above that has not passed',
  unknown: 'only the provider can decide: there are no keys, or the token is opaque',
};

async function explainStep(step: Step, context: StepContext): Promise<ExplainedCheck> {
  const { sight, facts, withhold } = context;
  const { id, verdict, reason } = step;
  const isFailed = verdict === 'fail' || verdict === 'follows';
  const isOfService = id === 'replay' || (id === 'revocation' && verdict === 'unknown');
  const whyNot = isOfService ? ofService[id] : notMade[verdict];
  const shown: Shown =
    whyNot === undefined ? showStep(step, { sight, force: facts.force, now: facts.now }) : { why: whyNot };
  const { expected, seen, why, setting } = shown;
  const causes = verdict === 'fail' ? await confirmCauses(step, context) : [];
  const isUnverified =
    isFailed && seen !== undefined && sight.isVerified !== true && findCheck(id)?.value?.in === 'claims';
  return {
    ...nameCheck(id),
    // A dry run does not know used proofs.
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
    ...(isFailed && reason !== undefined && causes.length === 0 && { fix: fixOf(reason) }),
  };
}

/** Names the causes of a failed step. A cause is certain only if its fix was tried with success. */
async function confirmCauses(
  { id, reason, comparison }: Step,
  { facts, tried }: StepContext,
): Promise<readonly NamedCause[]> {
  const candidates =
    reason === undefined
      ? []
      : findCauses(reason, { ...facts, wanted: comparison?.wanted, held: comparison?.received });
  const confirmed = new Set<object>();
  for (const candidate of candidates) {
    const { trial } = candidate;
    if (trial !== undefined && (await passesTrial(trial, id, tried))) confirmed.add(candidate);
  }
  return nameCauses(candidates, (candidate) => confirmed.has(candidate));
}

function guard({ fix, or, note, ...cause }: NamedCause, withhold: Withhold): NamedCause {
  return {
    ...cause,
    fix: withhold(fix),
    ...(or !== undefined && { or: withhold(or) }),
    ...(note !== undefined && { note: withhold(note) }),
  };
}
