import { readFile } from 'node:fs/promises';
import { createNonces } from '../../dpop/nonce.ts';
import { decideBy } from '../../explain/deciding-rule.ts';
import { explain } from '../../explain/explain.ts';
import type { ExplainedCheck, Explanation } from '../../explain/explanation.ts';
import { showText } from '../../explain/shown-text.ts';
import { formatInstant } from '../../explain/shown-time.ts';
import { AccessError, failures } from '../../failures.ts';
import { orderOf } from '../../gate/gate.ts';
import { readCommonOptions } from '../../gate/gate-service.ts';
import { type ChooseRule, chooseTreatment, createChooseRule, type Treatment } from '../../gate/match/rule-choice.ts';
import type { Rule, Rules } from '../../gate/rules/rules.ts';
import { readRules } from '../../gate/rules/rules-reader.ts';
import { formatRulesProblems } from '../../gate/rules/rules-text.ts';
import { createReadExternalUrl, type ReadExternalUrl } from '../../http/external-url.ts';
import type { ResourceRequest } from '../../http/request.ts';
import type { IssuerWithRecipients } from '../../resource-server/options.ts';
import { createResourceServer, type ResourceServer } from '../../resource-server/resource-server.ts';
import { readDenyList } from '../../server/process/open-deny-list.ts';
import type { Settings } from '../../server/settings/settings.ts';
import type { RegisteredClaims } from '../../token/claims.ts';
import { type KeyOptions, openKeys } from './explained-server.ts';
import type { CallToExplain, Explained, Explainer } from './explainer.ts';
import { labelRules } from './rule-labels.ts';
import { leaveCertificateOpen } from './unseen-certificate.ts';

/** What the gate would do with a request that no token decides about. */
const unseen: Readonly<Partial<Record<Treatment, string>>> = {
  open: 'open to all: no token is looked at',
  preflight: 'lets preflights pass',
  anonymous: 'a call without credentials may pass',
};

/** Explains against the rules of a file, as the gate judges by them. A text says why they cannot be used. */
export async function openGate(file: string, settings: Settings, keys: KeyOptions): Promise<Explainer | string> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch {
    return `portcullis: ${file} cannot be read. Name a rules file that can.\n`;
  }
  const read = await readRules({ name: file, text });
  if (read.kind === 'problems') return formatRulesProblems(file, read.problems);
  const { rules } = read;
  const { trustProxy, upstream } = settings;
  const trust = upstream === '' ? 'none' : trustProxy;
  const readExternalUrl = createReadExternalUrl({ trust });
  const chooseRule = createChooseRule(rules, readExternalUrl);
  const closing: (() => void)[] = [];

  const judge = async (rule: Rule, call: CallToExplain): Promise<Explained> => {
    const { request, connection, kind, at, policy, show } = call;
    const { server, problems } = await openRule(rule, { rules, settings, keys, closing });
    const explanation = await explain(server, request, policy ?? rule.policy, connection, {
      labels: labelRules(file, settings),
      kind,
      ...(at !== undefined && { at }),
      ...(show.length > 0 && { show }),
    });
    return { explanation: decideBy(rule, leaveCertificateOpen(explanation)), keysProblems: problems };
  };

  return {
    async explain(call) {
      const { request, connection } = call;
      const rule = chooseRule(request, connection);
      if (rule instanceof AccessError) {
        return {
          explanation: refuse(rule, call, describeMiss(rule, call, { chooseRule, readExternalUrl })),
          keysProblems: [],
        };
      }
      const treatment = chooseTreatment(rule, request);
      if (treatment === 'judge') return judge(rule, call);
      const explanation =
        treatment === 'deny'
          ? refuse(new AccessError('denied_by_rule'), call, { seen: `the rule ${rule.id} has "access": "deny"` })
          : explainWithoutChecks(call, []);
      return { explanation: decideBy(rule, explanation, unseen[treatment]), keysProblems: [] };
    },
    close() {
      for (const each of closing) each();
    },
  };
}

interface RuleContext {
  readonly rules: Rules;
  readonly settings: Settings;
  readonly keys: KeyOptions;
  readonly closing: (() => void)[];
}

/** The server that judges the tokens of one rule, with the keys of its issuers. */
async function openRule(
  rule: Rule,
  { rules, settings, keys, closing }: RuleContext,
): Promise<{ readonly server: ResourceServer<RegisteredClaims>; readonly problems: readonly string[] }> {
  const order = orderOf(rule, rules);
  const opened = await Promise.all(
    order.issuers.map(async (trusted) => ({ trusted, ...(await openKeys(trusted, keys)) })),
  );
  closing.push(...opened.map(({ close }) => close));
  const issuers = opened.map(({ trusted: { issuer, rules: own }, keys: set }) => ({
    issuer,
    keys: set,
    ...(own !== undefined && { rules: own }),
  })) as readonly IssuerWithRecipients[]; // rules with an issuer that has no recipients are not loaded
  const common = readCommonOptions(settings);
  const nonces = settings.dpopNonce === 'required' ? createNonces({ secret: settings.dpopNonceSecret }) : undefined;
  const server = createResourceServer({
    ...common,
    issuers,
    ...(settings.denyList !== '' && { denyList: readDenyList(settings.denyList) }),
    dpop: {
      ...common.dpop,
      ...(nonces !== undefined && { nonces }),
      ...(order.dpop !== undefined && { mode: order.dpop }),
    },
  });
  return { server, problems: opened.flatMap(({ problem }) => problem ?? []) };
}

function refuse({ reason }: AccessError, call: CallToExplain, facts: Partial<ExplainedCheck>): Explanation {
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

/** What was called, and whether there is a rule for another method. */
function describeMiss(
  error: AccessError,
  { request, connection }: CallToExplain,
  { chooseRule, readExternalUrl }: { readonly chooseRule: ChooseRule; readonly readExternalUrl: ReadExternalUrl },
): Partial<ExplainedCheck> {
  const url = readExternalUrl(request, connection);
  const host = url instanceof AccessError ? request.headers.get('host') : url.origin.replace(/^.*\//, '');
  const target = (request.target ?? new URL(request.url).pathname).replace(/[?#].*$/, '');
  const seen = showText(`${request.method} ${host ?? ''}${target}`);
  if (error.reason !== 'no_rule') return { seen };
  const others = methods.flatMap((method): readonly string[] => {
    const rule = method === request.method ? error : chooseRule(withMethod(request, method), connection);
    return rule instanceof AccessError ? [] : [`${rule.id} matches with ${method}`];
  });
  return { seen, why: others.length === 0 ? 'no rule has this host and path' : others.join(', ') };
}

function withMethod({ url, target, headers }: ResourceRequest, method: string): ResourceRequest {
  return { method, url, target, headers };
}
