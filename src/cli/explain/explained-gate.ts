import { createNonces } from '../../dpop/nonce.ts';
import { decideBy } from '../../explain/deciding-rule.ts';
import { explain } from '../../explain/explain.ts';
import type { ExplainedCheck, Explanation } from '../../explain/explanation.ts';
import { leaveCertificateOpen } from '../../explain/open-certificate.ts';
import { formatInstant } from '../../explain/shown-time.ts';
import { failures } from '../../failures.ts';
import { requirementsOf } from '../../gate/gate.ts';
import { findMode, readCommonOptions } from '../../gate/gate-follower.ts';
import {
  type Choice,
  type ChooseRule,
  chooseTreatment,
  createChooseRule,
  type Treatment,
} from '../../gate/match/rule-choice.ts';
import { type Rule, type RuleMcp, type Rules, RulesError } from '../../gate/rules/rules.ts';
import { readRulesFiles } from '../../gate/rules/rules-files.ts';
import { type RulesFile, readRules } from '../../gate/rules/rules-reader.ts';
import { formatRulesProblems } from '../../gate/rules/text/rules-text.ts';
import { createReadExternalUrl, type ReadExternalUrl } from '../../http/external-url.ts';
import type { ResourceRequest } from '../../http/request.ts';
import { readCopiedMessage } from '../../mcp/node-message.ts';
import { readTrustedHeaders } from '../../mcp/operation-headers.ts';
import { carriesMessage, type ReadMessage } from '../../mcp/operations.ts';
import { Refused } from '../../refused.ts';
import type { IssuerWithRecipients } from '../../resource-server/options.ts';
import { createResourceServer, type ResourceServer } from '../../resource-server/resource-server.ts';
import { readDenyList } from '../../server/process/open-deny-list.ts';
import { explainRevocations } from '../../server/revocation/open-revocations.ts';
import type { Settings } from '../../server/settings/settings.ts';
import { showText } from '../../shown-text.ts';
import type { RegisteredClaims } from '../../token/claims.ts';
import { type KeyOptions, openKeys } from './explained-server.ts';
import { type CallToExplain, type Explained, type Explainer, leaveMessageOpen } from './explainer.ts';
import { labelRules } from './labels.ts';

const unseen: Readonly<Partial<Record<Treatment, string>>> = {
  open: 'open to all: tokens are ignored',
  preflight: 'lets preflights pass',
  anonymous: 'a request without credentials passes',
};

/** Opens the rules of a file like the gate. Returns a message if they are not valid. */
export async function openGate(file: string, settings: Settings, keys: KeyOptions): Promise<Explainer | string> {
  let content: RulesFile;
  try {
    content = readRulesFiles(file);
  } catch (error) {
    if (!(error instanceof RulesError)) throw error;
    return `portcullis: ${error.message}\n`;
  }
  const read = await readRules(content);
  if (read.kind === 'problems') return formatRulesProblems(file, read.problems);
  const { rules } = read;
  const { trustProxy, upstream } = settings;
  const trust = upstream === '' && rules.upstreams.size === 0 ? 'none' : trustProxy;
  const readExternalUrl = createReadExternalUrl({ trust });
  const chooseRule = createChooseRule(rules, readExternalUrl);
  const closing: (() => void)[] = [];

  const judge = async ({ rule, request }: Choice, call: CallToExplain): Promise<Explained> => {
    const { connection, kind, at, policy, show } = call;
    const { server, problems } = await openRule(rule, { rules, settings, keys, closing });
    const { mcp } = rule;
    const operations = mcp && readOperations(mcp, call);
    const ofMessage = operations && mcp?.policies.explainedPolicy(operations);
    const explanation = await explain(server, request, policy ?? ofMessage ?? rule.policy, connection, {
      labels: labelRules(file, settings),
      kind,
      ...(at !== undefined && { at }),
      ...(show.length > 0 && { show }),
    });
    const isOpen = mcp !== undefined && operations === undefined;
    const closed = leaveCertificateOpen(explanation);
    return { explanation: decideBy(rule, isOpen ? leaveMessageOpen(closed) : closed), keysProblems: problems };
  };

  return {
    async explain(call) {
      const { request, connection } = call;
      const choice = chooseRule(request, connection);
      if (choice instanceof Refused) {
        return {
          explanation: refuse(choice, call, describeMiss(choice, call, { chooseRule, readExternalUrl })),
          keysProblems: [],
        };
      }
      const { rule } = choice;
      const treatment = chooseTreatment(choice);
      if (treatment === 'judge') return judge(choice, call);
      if (treatment === 'anonymous' && rule.mcp !== undefined) {
        return { explanation: decideBy(rule, explainAnonymous(rule.mcp, call), unseen.anonymous), keysProblems: [] };
      }
      const explanation =
        treatment === 'deny'
          ? refuse(new Refused('denied_by_rule'), call, { seen: `the rule ${rule.id} has "access": "deny"` })
          : explainWithoutChecks(call, []);
      return { explanation: decideBy(rule, explanation, unseen[treatment]), keysProblems: [] };
    },
    close() {
      for (const each of closing) each();
    },
  };
}

/** Reads the operations of the input for a rule with `mcp`. `undefined` if the input does not have them. */
function readOperations(
  { trustsHeaders }: RuleMcp,
  { request, rawHeaders, body }: CallToExplain,
): ReadMessage['operations'] | undefined {
  const { method } = request;
  if (trustsHeaders) return readTrustedHeaders(request).operations;
  if (body === undefined && carriesMessage(method)) return undefined;
  return readCopiedMessage({ method, rawHeaders, body: body ?? '' }).operations;
}

/** Operations need a token, also if the rule admits requests without one. */
function explainAnonymous(mcp: RuleMcp, call: CallToExplain): Explanation {
  const operations = readOperations(mcp, call);
  if (operations === undefined) return leaveMessageOpen(explainWithoutChecks(call, []));
  if (operations instanceof Refused) return refuse(operations, call, {});
  return operations.length === 0
    ? explainWithoutChecks(call, [])
    : refuse(new Refused('missing_credentials'), call, { why: 'operations need a token' });
}

interface RuleContext {
  readonly rules: Rules;
  readonly settings: Settings;
  readonly keys: KeyOptions;
  readonly closing: (() => void)[];
}

async function openRule(
  rule: Rule,
  { rules, settings, keys, closing }: RuleContext,
): Promise<{ readonly server: ResourceServer<RegisteredClaims>; readonly problems: readonly string[] }> {
  const order = requirementsOf(rule, rules);
  const opened = await Promise.all(
    order.issuers.map(async (trusted) => ({ trusted, ...(await openKeys(trusted, keys)) })),
  );
  closing.push(...opened.map(({ close }) => close));
  const issuers = opened.map(({ trusted: { issuer, rules: own }, keys: set }) => ({
    issuer,
    keys: set,
    ...(own !== undefined && { rules: own }),
  })) as readonly IssuerWithRecipients[]; // rules with an issuer that has no recipients are not loaded
  const common = readCommonOptions(settings, findMode(settings, rules));
  const nonces = settings.dpopNonce === 'required' ? createNonces({ secret: settings.dpopNonceSecret }) : undefined;
  const server = createResourceServer({
    ...common,
    issuers,
    ...(settings.denyList !== '' && { denyList: readDenyList(settings.denyList) }),
    ...explainRevocations(settings),
    dpop: {
      ...common.dpop,
      ...(nonces !== undefined && { nonces }),
      ...(order.dpop !== undefined && { mode: order.dpop }),
    },
  });
  return { server, problems: opened.flatMap(({ problem }) => problem ?? []) };
}

function refuse({ reason }: Refused, call: CallToExplain, facts: Partial<ExplainedCheck>): Explanation {
  const check: ExplainedCheck = {
    id: 'call',
    group: 'call',
    verdict: 'fail',
    reason,
    ...facts,
    fix: failures[reason].fix,
    docs: `refusals.md#${reason}`,
  };
  return { ...explainWithoutChecks(call, [check]), verdict: 'refused', reason, status: failures[reason].status };
}

function explainWithoutChecks({ at }: CallToExplain, checks: readonly ExplainedCheck[]): Explanation {
  const now = Math.floor(at ?? Date.now() / 1000);
  const against = { issuer: [], audiences: [], keys: 'none' } as const;
  return { version: 1, verdict: 'admitted', at: formatInstant(now), against, checks };
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

function describeMiss(
  error: Refused,
  { request, connection }: CallToExplain,
  { chooseRule, readExternalUrl }: { readonly chooseRule: ChooseRule; readonly readExternalUrl: ReadExternalUrl },
): Partial<ExplainedCheck> {
  const url = readExternalUrl(request, connection);
  const host = url instanceof Refused ? request.headers.get('host') : url.origin.replace(/^.*\//, '');
  const target = (request.target ?? new URL(request.url).pathname).replace(/[?#].*$/, '');
  const seen = showText(`${request.method} ${host ?? ''}${target}`);
  if (error.reason !== 'no_rule') return { seen };
  const others = methods.flatMap((method): readonly string[] => {
    const choice = method === request.method ? error : chooseRule(withMethod(request, method), connection);
    return choice instanceof Refused ? [] : [`${choice.rule.id} matches with ${method}`];
  });
  return { seen, why: others.length === 0 ? 'no rule has this host and path' : others.join(', ') };
}

function withMethod({ url, target, headers }: ResourceRequest, method: string): ResourceRequest {
  return { method, url, target, headers };
}
