import { readCopiedMessage } from '../../core/mcp/node-message.ts';
import { readTrustedHeaders } from '../../core/mcp/operation-headers.ts';
import { carriesMessage, type ReadMessage } from '../../core/mcp/operations.ts';
import type { Policy } from '../../core/policy/policy.ts';
import { type Explanation, explainReason, leaveOpen } from '../../explain/explanation.ts';
import type { ReceivedCall } from '../../explain/input/explained-call.ts';
import type { Rule, RuleExchange, RuleMcp, Rules } from '../match/rules.ts';

/** Explains a copied request by its rule. `explainBy` explains it by a policy, and leaves the client certificate open. */
export async function explainByRule(
  rule: Rule,
  { exchanges }: Pick<Rules, 'exchanges'>,
  call: ReceivedCall,
  explainBy: (policy: Policy<unknown>) => Promise<Explanation>,
): Promise<Explanation> {
  const { mcp } = rule;
  const operations = mcp && readOperations(mcp, call);
  const explanation = await explainBy((operations && mcp?.policies.explainedPolicy(operations)) ?? rule.policy);
  const closed = leaveClientOpen(explanation, rule);
  const open = mcp !== undefined && operations === undefined ? leaveMessageOpen(closed) : closed;
  const exchange = rule.exchange === undefined ? undefined : exchanges.get(rule.exchange);
  return exchange === undefined || open.verdict === 'refused' ? open : explainExchange(open, rule, exchange);
}

/** Reads the operations of the input for a rule with `mcp`. `undefined` if the input does not have them. */
export function readOperations(
  { trustsHeaders }: RuleMcp,
  { request, rawHeaders, body }: ReceivedCall,
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
export function leaveMessageOpen({ verdict, checks, ...rest }: Explanation): Explanation {
  const open = leaveOpen('mcp_operation', 'the input has no body: add it, such as --data of curl');
  return { ...rest, verdict: verdict === 'admitted' ? 'undecided' : verdict, checks: [...checks, open] };
}

/** Adds the exchange that the request would make. Only the provider can tell its outcome; a bound token is refused before. */
function explainExchange(
  { checks, ...rest }: Explanation,
  { exchange: name = '' }: Rule,
  { audience, resource, bound }: RuleExchange,
): Explanation {
  // An introspection may have returned the claims.
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
  const refused = explainReason('exchange_refused', rest.at, { id: 'exchange', group: 'exchange', why });
  return { ...rest, ...refused, against: rest.against, checks: [...checks, ...refused.checks] };
}
