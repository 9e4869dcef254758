import { AccessError, type Failure, failures } from '../failures.ts';
import type { Connection, ResourceRequest } from '../http/request.ts';
import type { JsonObject } from '../jose/json.ts';
import type { KeySet } from '../keys/key-set.ts';
import { checkPolicy } from '../policy/checked-policy.ts';
import type { Policy } from '../policy/policy.ts';
import { findRules, type KeptRules } from '../resource-server/kept-rules.ts';
import type { ResourceServer } from '../resource-server/resource-server.ts';
import { findCauses } from './causes/causes.ts';
import { type DryRun, runDry } from './dry-run.ts';
import type { ExplainedCheck, Explanation } from './explanation.ts';
import { type Facts, type InForce, optionLabels, type SettingLabels } from './facts.ts';
import type { InputKind } from './input/input.ts';
import { look } from './looks.ts';
import { createWithhold, type Withhold } from './shown-text.ts';
import { formatInstant } from './shown-time.ts';
import { readUnverified } from './unverified.ts';
import type { Step } from './walk.ts';

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
  /** Whether the domain is set with `https://` in front, which only the service survives. Default `false`. */
  readonly domainHasScheme?: boolean;
}

/** Headers besides Authorization that people put tokens into. */
const otherHeaders = [
  'X-Access-Token',
  'X-Auth-Token',
  'X-Authorization',
  'Access-Token',
  'Token',
  'X-Api-Key',
  'X-Forwarded-Access-Token',
];
const tokenLike = /^(?:bearer )?ey[\w-]+\.[\w-]+\.[\w-]*$/i;

/**
 * Explains how a request is judged: every check, with what was expected and seen, and the causes of those that fail. It is a
 * dry run: no proof is used up, no key is fetched, and nothing that `judge` keeps is changed. The reason is the reason
 * that `judge` gives. Rejects with `TypeError` for a policy that cannot work, and a server of another making.
 *
 * @example
 * const explanation = await explain(server, request, { scopes: ['read:messages'] });
 */
export async function explain<C>(
  server: ResourceServer,
  request: ResourceRequest,
  policy?: Policy<C>,
  connection?: Connection,
  options: ExplainOptions = {},
): Promise<Explanation> {
  const rules = findRules(server);
  if (rules === undefined) throw new TypeError('explain: the server is not made by createResourceServer');
  const now = options.at ?? rules.now();
  const asked = policy ?? {};
  const checked = checkPolicy(asked);
  const run = await runDry({ rules, request, connection, policy: checked, now, keys: options.keys });
  const force = readForce(rules, run, asked, options);
  const facts = readFacts(request, run, { force, now, kind: options.kind ?? 'request' });
  const withhold = createWithhold(secretsOf(request));
  const checks = run.walk.steps.map((step) => explainStep(step, { run, facts, withhold }));
  const failed = run.walk.steps.find(({ verdict }) => verdict === 'fail');
  const reason = failed?.reason;
  const isUnknown = run.walk.steps.some(({ id, verdict }) => id === 'introspection' && verdict === 'unknown');
  const status = reason === undefined ? undefined : (rules.statuses.get(reason) ?? failures[reason].status);
  return {
    version: 1,
    // A refusal for want of keys says nothing of the token.
    verdict:
      reason === 'keys_unavailable' || (reason === undefined && isUnknown)
        ? 'undecided'
        : reason === undefined
          ? 'admitted'
          : 'refused',
    ...(reason !== undefined && { reason }),
    ...(status !== undefined && { status }),
    at: formatInstant(Math.floor(now)),
    against: {
      issuer: force.issuers,
      audiences: force.audiences,
      keys: reason === 'keys_unavailable' ? 'none' : options.keys === undefined ? 'fetched' : 'given',
    },
    checks,
  };
}

/** Texts that must not be shown, nor a part of them. */
function secretsOf({ headers, url }: ResourceRequest): readonly string[] {
  const values = ['authorization', 'dpop', 'cookie', ...otherHeaders].map((name) => headers.get(name) ?? '');
  const query = url.includes('?') ? url.slice(url.indexOf('?')) : '';
  // A scheme and a space are no secret, and parts of a token are.
  return [...values.flatMap((value) => value.split(/[\s.,;]+/)), ...query.split(/[?&=#]/)];
}

function readForce(rules: KeptRules, { sight }: DryRun, policy: Policy<unknown>, options: ExplainOptions): InForce {
  const { issuer, trusted } = sight;
  const { scopes = [], anyScope = [], permissions = [] } = 'policies' in policy ? {} : policy;
  return {
    issuers: trusted.map((each) => each.issuer),
    audiences:
      issuer === undefined ? [...new Set(trusted.flatMap(({ audiences }) => [...audiences]))] : [...issuer.audiences],
    mode: rules.mode,
    algorithms:
      issuer === undefined
        ? [...new Set(trusted.flatMap(({ algorithms }) => [...algorithms]))]
        : [...issuer.algorithms],
    scopes: [...scopes, ...anyScope],
    permissions,
    domainHasScheme: options.domainHasScheme ?? false,
    labels: options.labels ?? optionLabels,
  };
}

function readFacts(
  { headers, url }: ResourceRequest,
  { sight }: DryRun,
  { force, now, kind }: { readonly force: InForce; readonly now: number; readonly kind: InputKind },
): Facts {
  const authorization = headers.get('authorization');
  const token = sight.credentials?.token ?? (authorization ?? '').replace(/^[^\s]*\s*/, '');
  const unverified = readUnverified(token);
  return {
    seen: {
      kind,
      authorization,
      token,
      url,
      cookie: headers.get('cookie'),
      otherHeaders: otherHeaders.filter((name) => tokenLike.test(headers.get(name) ?? '')),
      header: sight.header ?? unverified.header,
      claims: sight.claims ?? unverified.claims,
      proofClaims: sight.proof?.claims ?? ({} satisfies JsonObject),
    },
    force,
    externalUrl: sight.url === undefined ? undefined : `${sight.url.origin}${sight.url.path}`,
    now,
  };
}

interface StepContext {
  readonly run: DryRun;
  readonly facts: Facts;
  readonly withhold: Withhold;
}

const unverifiedGroups: ReadonlySet<string> = new Set(['issuer', 'aud', 'exp', 'nbf', 'iat', 'sub', 'scope', 'policy']);

function explainStep(step: Step, { run, facts, withhold }: StepContext): ExplainedCheck {
  const { id, group, verdict, reason, refusal } = step;
  const isFailed = verdict === 'fail' || verdict === 'follows';
  const isMade = isFailed || verdict === 'pass';
  const name = refusal?.reason ?? reason;
  const shown = isMade
    ? look(id, {
        sight: run.sight,
        force: facts.force,
        now: facts.now,
        refusal: refusal instanceof AccessError ? refusal : undefined,
      })
    : { why: step.why ?? '' };
  const { expected, seen, why, setting } = shown as ReturnType<typeof look>; // one shape, more or less of it
  const failure: Failure | undefined = isFailed && name !== undefined ? failures[name] : undefined;
  const causes = verdict === 'fail' && name !== undefined ? findCauses(name, facts) : [];
  return {
    id,
    group,
    verdict,
    ...(name !== undefined && isFailed && { reason: name }),
    ...(expected !== undefined && {
      expected: typeof expected === 'string' ? withhold(expected) : expected.map(withhold),
    }),
    ...(seen !== undefined && { seen: withhold(seen) }),
    ...(isFailed && seen !== undefined && !run.sight.isVerified && unverifiedGroups.has(group) && { verified: false }),
    ...(why !== undefined && why !== '' && { why: withhold(why) }),
    ...(setting !== undefined && { setting }),
    ...(causes.length > 0 && {
      causes: causes.map(({ fix, or, note, ...cause }) => ({
        ...cause,
        fix: withhold(fix),
        ...(or !== undefined && { or: withhold(or) }),
        ...(note !== undefined && { note: withhold(note) }),
      })),
    }),
    ...(failure !== undefined && causes.length === 0 && { fix: failure.fix }),
    ...(failure !== undefined && { docs: `refusals.md#${name}` }),
  };
}
