import type { Reason } from '../../core/failures.ts';
import { createReadClientAddress, createReadExternalUrl } from '../../core/http/external-url.ts';
import { readCopiedMessage } from '../../core/mcp/node-message.ts';
import { readTrustedHeaders } from '../../core/mcp/operation-headers.ts';
import { carriesMessage, type ReadMessage } from '../../core/mcp/operations.ts';
import { Refused } from '../../core/refused.ts';
import type { TrustedIssuer } from '../../core/resource-server/issuers/trusted-issuer.ts';
import { createDisguise } from '../../core/shown-comparison.ts';
import { showText } from '../../core/shown-text.ts';
import { explain } from '../../explain/explain.ts';
import {
  decideBy,
  type Explanation,
  explainReason,
  leaveCertificateOpen,
  leaveOpen,
  startExplanation,
} from '../../explain/explanation.ts';
import { formatInstant } from '../../explain/shown-time.ts';
import { describeUnserved, explainUnserved } from '../../explain/unserved.ts';
import { requirementsOf } from '../../gate/gate.ts';
import { findMode, trustOf } from '../../gate/gate-follower.ts';
import { openIntrospections } from '../../gate/gate-servers.ts';
import { type Choice, chooseTreatment, createChooseRule, findDenial } from '../../gate/match/rule-choice.ts';
import type { Rule, RuleExchange, RuleMcp } from '../../gate/match/rules.ts';
import { readFraming } from '../../gate/proxy/request-head.ts';
import { describeNear } from '../../gate/review/rule-ranking.ts';
import { findHeadRefusal } from '../../server/http/exchange.ts';
import { exitCodes } from '../../server/lifecycle/exit.ts';
import { openResourceServer } from '../../server/process/open-resource-server.ts';
import { openOutside } from '../../server/process/outside.ts';
import type { Settings } from '../../server/settings/settings.ts';
import { loadRules, requireRules } from '../rules.ts';
import {
  type CallToExplain,
  type Explainer,
  type KeyOptions,
  leavePeerOpen,
  type OpenedKeys,
  openKeys,
} from './explainer.ts';
import { labelRules } from './labels.ts';

const remarks: Readonly<Partial<Record<ReturnType<typeof chooseTreatment>, string>>> = {
  open: 'open to all: tokens are ignored',
  preflight: 'lets preflights pass',
  anonymous: 'a request without credentials passes',
};

/** A rules file, and the settings of its gate. */
interface GateToExplain {
  readonly path: string;
  readonly settings: Settings;
  /** False if `TRUST_PROXY` has its default. */
  readonly isTrustSet: boolean;
}

/** Opens the rules of a file like the gate. Throws a failure that describes rules that are not valid. */
export async function openGate(given: GateToExplain, keyOptions: KeyOptions): Promise<Explainer> {
  const { path: file } = given;
  const { rules } = await loadRules(file, exitCodes.config);
  const mode = findMode(given.settings, rules);
  const settings = { ...given.settings, ...trustOf(mode, given) };
  const { trustProxy, logIdentity, logIdentitySecret } = settings;
  // Beside a proxy, the gate reads forwarded headers of the proxy, and none of a pasted request.
  const trust = mode === 'beside' ? 'none' : trustProxy;
  const readExternalUrl = createReadExternalUrl({ trust });
  const chooseRule = createChooseRule(rules, readExternalUrl, {
    readClientAddress: createReadClientAddress(trustProxy),
  });
  const labels = labelRules(file, settings);
  const disguise = createDisguise(logIdentity === 'plain' ? 'plain' : 'hashed', logIdentitySecret);
  const introspections = requireRules(() => openIntrospections(rules, new Map()), exitCodes.config);
  const means = await openOutside(settings, keyOptions.network);
  const opened: OpenedKeys[] = [];

  const openServer = async (rule: Rule) => {
    const { issuers: entries, dpop } = requirementsOf(rule, rules);
    const issuers = await Promise.all(
      entries.map(async ([, trusted]): Promise<TrustedIssuer> => {
        const { issuer, rules: own } = trusted;
        const keys = await openKeys(trusted, keyOptions);
        opened.push(keys);
        return { issuer, keys: keys.keys, ...(own !== undefined && { rules: own }) };
      }),
    );
    const [introspection] = entries.flatMap(([name]) => introspections.get(name)?.introspection ?? []);
    return openResourceServer(settings, { from: 'rules', issuers, mode, introspection, dpop }, means);
  };

  const judge = async ({ rule, request }: Choice, call: CallToExplain): Promise<Explanation> => {
    const server = await openServer(rule);
    const { mcp } = rule;
    const operations = mcp && readOperations(mcp, call);
    const policy = call.policy ?? (operations && mcp?.policies.explainedPolicy(operations)) ?? rule.policy;
    const explanation = await explain(server, request, policy, call.connection, {
      ...{ labels, disguise, ...call.options },
      ...(keyOptions.network === 'online' && { introspection: 'ask' }),
    });
    const closed = leaveClientOpen(leaveCertificateOpen(explanation), rule);
    const open = mcp !== undefined && operations === undefined ? leaveMessageOpen(closed) : closed;
    const exchange = rule.exchange === undefined ? undefined : rules.exchanges.get(rule.exchange);
    return exchange === undefined || open.verdict === 'refused' ? open : explainExchange(open, rule, exchange, call);
  };

  /** A request that no rule matches, or whose path is ambiguous. */
  const explainMiss = ({ reason, context }: Refused, call: CallToExplain): Explanation => {
    const seen = `${showText(call.request.method)} ${context?.['host']}${context?.['path']}`;
    const near = reason === 'no_rule' ? describeNear(rules, call.request) : undefined;
    const why = near === '' ? 'no rule has this host and path' : near && `nearly matched: ${near}`;
    return refuse(reason, call, { seen, why });
  };

  const explainer: Explainer = {
    async explain(call) {
      const status = mode === 'proxy' ? findHeadRefusal(call.request) : undefined;
      if (status !== undefined) {
        const fix = describeUnserved(status, call.request, labels);
        return explainUnserved(status, call.request, startExplanation(showTime(call)), fix);
      }
      const framing = mode === 'proxy' && call.options.kind === 'request' ? readPasted(call) : undefined;
      if (framing instanceof Refused)
        return refuse('ambiguous_request', call, { seen: `${framing.context?.['part']}` });
      const choice = chooseRule(call.request, call.connection);
      if (choice instanceof Refused) return explainMiss(choice, call);
      const treatment = chooseTreatment(choice);
      const explanation = treatment === 'judge' ? await judge(choice, call) : explainWithoutToken(choice, call);
      return decideBy(choice.rule, explanation, remarks[treatment]);
    },
    opened,
    close() {
      for (const { close } of opened) close();
      for (const { introspection } of introspections.values()) introspection.close();
      means.revocations?.close();
    },
  };
  return leavePeerOpen(explainer, trust);
}

/** Reads a request like the gate as the proxy. */
const readPasted = ({ url, rawHeaders }: CallToExplain) =>
  readFraming({ rawHeaders: [...rawHeaders], httpVersion: '1.1', url });

function explainWithoutToken(choice: Choice, call: CallToExplain): Explanation {
  const { id, mcp } = choice.rule;
  const treatment = chooseTreatment(choice);
  const admitted = startExplanation(showTime(call));
  if (treatment === 'ambiguous') return refuse('ambiguous_request', call, { seen: 'Sec-WebSocket-Protocol' });
  const denying = findDenial(choice.rule, call.request.method);
  if (treatment === 'deny') return refuse('denied_by_rule', call, { seen: `the rule ${id} ${denying}` });
  if (treatment !== 'anonymous' || mcp === undefined) return admitted;
  // Operations need a token, even if the rule admits requests without one.
  const operations = readOperations(mcp, call);
  if (operations === undefined) return leaveMessageOpen(admitted);
  if (operations instanceof Refused) return refuse(operations.reason, call, {});
  if (operations.length === 0) return admitted;
  return refuse('missing_credentials', call, { why: 'operations need a token' });
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

/** Without the address of the client, a condition that reads it is not decided. */
function leaveClientOpen(explanation: Explanation, { when }: Rule): Explanation {
  const { reason, verdict: _, status: __, checks, ...rest } = explanation;
  if (reason !== 'condition_not_met' || when?.text.includes('client_ip') !== true) return explanation;
  const open = leaveOpen('condition', 'the input does not have the address of the client');
  return { ...rest, verdict: 'undecided', checks: checks.map((check) => (check.id === 'condition' ? open : check)) };
}

/** Without the message, the entry of a tool is not known. */
function leaveMessageOpen({ verdict, checks, ...rest }: Explanation): Explanation {
  const open = leaveOpen('mcp_operation', 'the input has no body: add it, such as --data of curl');
  return { ...rest, verdict: verdict === 'admitted' ? 'undecided' : verdict, checks: [...checks, open] };
}

/** Adds the exchange that the request would make. Only the provider can tell its outcome; a bound token is refused before. */
function explainExchange(
  { checks, ...rest }: Explanation,
  { exchange: name = '' }: Rule,
  { audience, resource, bound }: RuleExchange,
  call: CallToExplain,
): Explanation {
  // The claims may be those of an introspection.
  const hasBinding = checks.some(
    ({ id, group, verdict }) => id === 'proof' || (group === 'certificate' && verdict !== 'skipped'),
  );
  const isRefused = hasBinding && bound !== 'allow';
  const target = [audience, resource].filter((each) => each !== undefined).join(', ');
  const why = isRefused
    ? `the token is bound by cnf, and the exchange "${name}" has no "bound": "allow"`
    : `"${name}" would exchange the token for one for ${target}; nothing was sent`;
  if (!isRefused || rest.verdict === 'undecided') {
    return { ...rest, verdict: 'undecided', checks: [...checks, leaveOpen('exchange', why)] };
  }
  const refused = explainReason('exchange_refused', showTime(call), { id: 'exchange', group: 'exchange', why });
  return { ...rest, ...refused, against: rest.against, checks: [...checks, ...refused.checks] };
}

function refuse(reason: Reason, call: CallToExplain, facts: Partial<Parameters<typeof explainReason>[2]>) {
  return explainReason(reason, showTime(call), { id: 'call', group: 'call', ...facts });
}

function showTime({ options }: CallToExplain): string {
  return formatInstant(Math.floor(options.at));
}
