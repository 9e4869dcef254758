import type { Reason } from '../../core/failures.ts';
import { createReadClientAddress, createReadExternalUrl } from '../../core/http/external-url.ts';
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
  startExplanation,
} from '../../explain/explanation.ts';
import { formatInstant } from '../../explain/shown-time.ts';
import { describeUnserved, explainUnserved } from '../../explain/unserved.ts';
import { requirementsOf } from '../../gate/gate.ts';
import { findMode, trustOf } from '../../gate/gate-follower.ts';
import { openIntrospections } from '../../gate/gate-servers.ts';
import { type Choice, chooseTreatment, createChooseRule, findDenial } from '../../gate/match/rule-choice.ts';
import type { Rule } from '../../gate/match/rules.ts';
import { readCopiedFraming } from '../../gate/proxy/request-head.ts';
import { explainByRule, leaveMessageOpen, readOperations } from '../../gate/review/explained-rule.ts';
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
    return explainByRule(rule, rules, call, async (policy) =>
      leaveCertificateOpen(
        await explain(server, request, call.policy ?? policy, call.connection, {
          ...{ labels, disguise, ...call.options },
          ...(keyOptions.network === 'online' && { introspection: 'ask' }),
        }),
      ),
    );
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
      const framing = mode === 'proxy' && call.options.kind === 'request' ? readCopiedFraming(call) : undefined;
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

function refuse(reason: Reason, call: CallToExplain, facts: Partial<Parameters<typeof explainReason>[2]>) {
  return explainReason(reason, showTime(call), { id: 'call', group: 'call', ...facts });
}

function showTime({ options }: CallToExplain): string {
  return formatInstant(Math.floor(options.at));
}
