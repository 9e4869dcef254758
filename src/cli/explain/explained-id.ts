import { decideBy, type Explanation, explainReason, listCausalFacts } from '../../explain/explanation.ts';
import type { DecisionDetail } from '../../server/console/wire.ts';
import { UsageError } from '../commands/failure.ts';
import { type ConsoleAddress, openConsoleClient } from './console-client.ts';
import { isReason } from './reason-page.ts';

const idForm = /^[\w.:-]{1,128}$/;

/** Queries the console of a running service for a recent request. */
export async function explainById(id: string, address: ConsoleAddress, environment: NodeJS.ProcessEnv) {
  if (!idForm.test(id)) throw new UsageError('id: write the X-Request-Id of a response.');
  const detail = await (await openConsoleClient(address, environment)).findDecision(id);
  if (detail === undefined) {
    throw new UsageError(
      'id: the console does not know this request. It stores the last 200 refusals since the start; the log has older ones: --id ID --file LOG.',
    );
  }
  if (detail.decision.id !== id) {
    // Stdout has the explanation only, also as JSON.
    process.stderr.write(
      'portcullis: found by the X-Request-Id that the caller chose, which another request can have too. ' +
        `The service's own id is ${detail.decision.id}.\n`,
    );
  }
  return explainDetail(detail);
}

/**
 * Explains a decision by its checks, or by the facts of its log line if the checks cannot tell why it was made. Throws a
 * `UsageError` without either.
 */
export function explainDetail({ decision, facts, explanation: walked }: DecisionDetail): Explanation {
  const { reason, status, at, method, outcome, route } = decision;
  if (walked !== undefined && reason === undefined) return { ...walked, verdict: 'admitted' };
  if (walked !== undefined && (walked.rule?.wouldRefuse ?? walked.reason) === reason) return walked;
  if (reason === undefined || !isReason(reason)) {
    throw new UsageError('id: no token was validated for this request, so there are no checks.');
  }
  const named = Object.fromEntries(facts);
  const { expected, received, path, host = '', nearest } = named;
  const seen = received ?? (path === undefined ? undefined : `${method} ${host}${path}`);
  const why = nearest === undefined ? listCausalFacts(named) : `nearly matched: ${nearest}`;
  const explained = explainReason(reason, at, { id: 'log', group: 'log line', expected, seen, why }, status);
  return outcome === 'would_refuse' ? decideBy({ id: route, mode: 'report' }, explained) : explained;
}
