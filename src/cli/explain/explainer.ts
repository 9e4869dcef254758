import { findCheck } from '../../checks.ts';
import { explain } from '../../explain/explain.ts';
import { type ExplainedCheck, type Explanation, nameCheck } from '../../explain/explanation.ts';
import type { InputKind } from '../../explain/input/input.ts';
import { leaveCertificateOpen } from '../../explain/open-certificate.ts';
import type { Connection, ResourceRequest } from '../../http/request.ts';
import type { Policy } from '../../policy/policy.ts';
import type { ExplainedServer } from './explained-server.ts';

export interface CallToExplain {
  readonly request: ResourceRequest;
  readonly connection: Connection;
  /** Names and values of the headers, alternately. */
  readonly rawHeaders: readonly string[];
  /** `undefined` if the input has no body. */
  readonly body: string | undefined;
  readonly kind: InputKind;
  /** Seconds since the epoch. Default: now. */
  readonly at: number | undefined;
  readonly policy: Policy<unknown> | undefined;
  readonly show: readonly string[];
}

export interface Explained {
  readonly explanation: Explanation;
  /** Problems of keys; empty if they were fetched, or are not required. */
  readonly keysProblems: readonly string[];
}

export interface Explainer {
  explain(call: CallToExplain): Promise<Explained>;
  close(): void;
}

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
  return { ...rest, verdict: 'undecided', checks: rest.checks.map(leaveUncompared) };
}

/** Without settings, checks that compare with one show only the token. */
function leaveUncompared(check: ExplainedCheck): ExplainedCheck {
  if (findCheck(check.id)?.setting === undefined) return check;
  const { id, why, seen } = check;
  return {
    ...nameCheck(id),
    verdict: 'unknown',
    why: `${why ?? seen ?? 'absent'} (not compared: there are no settings)`,
  };
}

/** Without the message, the entry of a tool is not known. */
export function leaveMessageOpen(explanation: Explanation): Explanation {
  const { verdict, checks } = explanation;
  const why = 'the input has no body: add it, such as --data of curl';
  const open = { ...nameCheck('mcp_operation'), verdict: 'unknown', why } as const;
  return { ...explanation, verdict: verdict === 'admitted' ? 'undecided' : verdict, checks: [...checks, open] };
}
