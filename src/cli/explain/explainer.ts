import { explain } from '../../explain/explain.ts';
import type { ExplainedCheck, Explanation } from '../../explain/explanation.ts';
import type { InputKind } from '../../explain/input/input.ts';
import type { Connection, ResourceRequest } from '../../http/request.ts';
import type { Policy } from '../../policy/policy.ts';
import type { ExplainedServer } from './explained-server.ts';
import { leaveCertificateOpen } from './unseen-certificate.ts';

/** A call that is explained. */
export interface CallToExplain {
  readonly request: ResourceRequest;
  readonly connection: Connection;
  readonly kind: InputKind;
  /** Seconds since the epoch. Default: now. */
  readonly at: number | undefined;
  /** In place of what the route asks for. */
  readonly policy: Policy<unknown> | undefined;
  /** Names of claims that are shown. */
  readonly show: readonly string[];
}

/** What came of it. */
export interface Explained {
  readonly explanation: Explanation;
  /** Why there are no keys; empty if there are, or nobody asked for them. */
  readonly keysProblems: readonly string[];
}

/** What calls are explained against. */
export interface Explainer {
  explain(call: CallToExplain): Promise<Explained>;
  close(): void;
}

/** Explains against one server. */
export function createServerExplainer(opened: ExplainedServer): Explainer {
  const { server, labels, domainHasScheme, isDecodeOnly, keysProblem, policyOf, close } = opened;
  return {
    async explain({ request, connection, kind, at, policy, show }) {
      const asked = policy ?? policyOf(new URL(request.url).pathname);
      const explanation = await explain(server, request, asked, connection, {
        labels,
        domainHasScheme,
        kind,
        ...(at !== undefined && { at }),
        ...(show.length > 0 && { show }),
      });
      return {
        explanation: isDecodeOnly ? leaveUndecided(explanation) : leaveCertificateOpen(explanation),
        keysProblems: keysProblem === undefined ? [] : [keysProblem],
      };
    },
    close,
  };
}

function leaveUndecided({ reason: _, status: __, ...rest }: Explanation): Explanation {
  return { ...rest, verdict: 'undecided', checks: rest.checks.map(leaveOpen) };
}

/** Checks that compare with settings, if there are none: only what the token says is left. */
function leaveOpen(check: ExplainedCheck): ExplainedCheck {
  if (!['issuer', 'alg', 'issuer_alg', 'aud'].includes(check.id)) return check;
  const { id, group, why, seen } = check;
  return { id, group, verdict: 'unknown', why: `${why ?? seen ?? 'absent'} (not compared: there are no settings)` };
}
