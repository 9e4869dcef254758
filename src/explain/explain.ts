import { findCheck } from '../core/checks.ts';
import type { Connection, ResourceRequest } from '../core/http/request.ts';
import type { KeySet } from '../core/keys/key-set.ts';
import { checkPolicy } from '../core/policy/checked-policy.ts';
import type { Policy } from '../core/policy/policy.ts';
import { requireOwnServer } from '../core/resource-server/own-server.ts';
import type { ResourceServer } from '../core/resource-server/resource-server.ts';
import type { Disguise } from '../core/shown-comparison.ts';
import { createWithhold, showText, showValue } from '../core/shown-text.ts';
import type { RegisteredClaims } from '../core/token/claims.ts';
import type { Step } from '../core/walk.ts';
import { findCauses, nameCauses } from './causes/causes.ts';
import { type DryRun, dryRun } from './dry-run.ts';
import type { ExplainedCheck, NamedCause } from './explained-check.ts';
import { type Explanation, fixOf, nameCheck, type ShownClaim } from './explanation.ts';
import { type Facts, readFacts, readForce, type SettingLabels, secretsOf } from './facts.ts';
import type { InputKind } from './input/input.ts';
import { showStep } from './looks.ts';
import { formatInstant } from './shown-time.ts';
import { passesTrial } from './trial.ts';

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
  const { at: now = rules.now(), keys, introspection, kind = 'request', show } = options;
  const asked = policy ?? {};
  const call = { request, policy: checkPolicy(asked), connection, now, keys, introspection };
  const run = await dryRun(rules, call);
  const facts = readFacts(run.gathered, readForce(run.gathered, asked, options), kind);
  const context: StepContext = { run, facts, guard: createGuard(request) };
  const checks: ExplainedCheck[] = [];
  for (const step of run.steps) checks.push(await explainStep(step, context));
  const refusal = run.verdict === 'refused' ? run.steps.find(({ verdict }) => verdict === 'fail')?.refusal : undefined;
  const { issuers: issuer, audiences } = facts.force;
  return {
    version: 1,
    verdict: run.verdict,
    ...(refusal !== undefined && {
      reason: refusal.reason,
      status: server.describeRefusal(refusal, request, { connection }).status,
    }),
    at: formatInstant(Math.floor(now)),
    against: { issuer, audiences, keys: describeKeys(run) },
    ...(show !== undefined && { shown: show.map((name) => showClaim(name, context)) }),
    checks,
  };
}

interface StepContext {
  readonly run: DryRun;
  readonly facts: Facts;
  readonly guard: ReturnType<typeof createGuard>;
}

/** Creates the function that withholds each string which repeats a part of the credentials, except the id of a cause. */
function createGuard(request: ResourceRequest) {
  const withhold = createWithhold(secretsOf(request));
  const replace = (name: string, value: unknown): unknown =>
    typeof value === 'string' && name !== 'id' ? withhold(value) : value;
  return <Shown extends object>(shown: Shown) => JSON.parse(JSON.stringify(shown), replace) as Shown; // of strings
}

function showClaim(claim: string, { run, facts: { seen }, guard }: StepContext): ShownClaim {
  const value = Object.hasOwn(seen.claims, claim) ? seen.claims[claim] : undefined;
  return guard({ claim: showText(claim), value: showValue(value), verified: run.gathered.isVerified });
}

function describeKeys({ steps, gathered }: DryRun): Explanation['against']['keys'] {
  if (steps.some(({ id, verdict }) => id === 'key' && verdict === 'unknown')) return 'none';
  return gathered.call.keys === undefined ? 'fetched' : 'given';
}

/** Reasons for steps that were not made: by the verdict, or by the id of a step that only the running service can make. */
const notMade: Readonly<Record<string, string>> = {
  replay: 'not tried: explain never uses up a proof',
  revocation: 'only the service knows its cutoffs: query it by explain --id, or explain --admin',
  blocked: 'cannot be tried: it needs a check above that has not passed',
  unknown: 'only the provider can decide: there are no keys, or the token is opaque',
};

async function explainStep(step: Step, context: StepContext): Promise<ExplainedCheck> {
  const { facts, guard, run } = context;
  const { id, verdict, reason } = step;
  const isFailed = verdict === 'fail' || verdict === 'follows';
  const isOfService = id === 'replay' || (id === 'revocation' && verdict === 'unknown');
  const whyNot = notMade[isOfService ? id : verdict];
  const shown = whyNot === undefined ? showStep(step, { ...facts, sight: run.gathered }) : { why: whyNot };
  const { setting, why = '', ...values } = shown;
  const causes = verdict === 'fail' ? await confirmCauses(step, context) : [];
  const isUnverified =
    isFailed && values.seen !== undefined && !run.gathered.isVerified && findCheck(id)?.value?.in === 'claims';
  return {
    ...nameCheck(id),
    // A dry run does not know used proofs.
    verdict: id === 'replay' ? 'unknown' : verdict,
    ...(isFailed && reason !== undefined && { reason }),
    ...guard({
      ...values,
      ...(isUnverified && { verified: false }),
      ...(why !== '' && { why }),
      ...(setting !== undefined && { setting }),
      ...(causes.length > 0 && { causes }),
    }),
    ...(isFailed && reason !== undefined && { docs: `refusals.md#${reason}` }),
    ...(isFailed && reason !== undefined && causes.length === 0 && { fix: fixOf(reason) }),
  };
}

/** Names the causes of a failed step. A cause is certain only if its fix was tried with success. */
async function confirmCauses(step: Step, { facts, run }: StepContext): Promise<readonly NamedCause[]> {
  const { id, reason = '', comparison } = step;
  const candidates = findCauses(reason, { ...facts, wanted: comparison?.wanted, held: comparison?.received });
  const confirmed = new Set<object>();
  for (const candidate of candidates) {
    const { trial } = candidate;
    if (trial !== undefined && (await passesTrial(trial, id, run))) confirmed.add(candidate);
  }
  return nameCauses(candidates, (candidate) => confirmed.has(candidate));
}
