import type { Explanation } from '../../explain/explanation.ts';
import { failures } from '../../failures.ts';
import type { DecisionDetail } from '../../server/console/wire.ts';
import { variants } from '../../server/variants/variants.ts';
import { type ConsoleAddress, openConsoleClient } from './console-client.ts';
import { isReason } from './reason-page.ts';

const audienceNames: ReadonlySet<string> = new Set(Object.values(variants).map(({ names }) => names.audience));
const idForm = /^[\w.:-]{1,128}$/;

export interface AnyCall extends ConsoleAddress {
  readonly id: string;
}

/** Queries the console of a running service for a recent request. Throws `TypeError` if it cannot be read. */
export async function explainById(call: AnyCall, environment: NodeJS.ProcessEnv): Promise<Explanation> {
  const { id, keyFile } = call;
  if (!idForm.test(id)) throw new TypeError('id: write the X-Request-Id of a response');
  const detail = await (await openConsoleClient(call, environment)).findDecision(id);
  if (detail === undefined) {
    throw new TypeError(
      'id: the console does not know this request. It stores the last 200 refusals since the start; the log has older ones: --id ID --file LOG',
    );
  }
  if (detail.decision.id !== id) {
    // Stdout has the explanation only, also as JSON.
    process.stderr.write(
      'portcullis: found by the X-Request-Id that the caller chose, which another request can have too. ' +
        `The service's own id is ${detail.decision.id}.\n`,
    );
  }
  const explanation = explainDetail(detail);
  return call.admin === undefined && keyFile === undefined ? nameFlagsOfDev(explanation) : explanation;
}

/** The service of `dev` names variables. `dev` has its own flag for the audience, and reads other settings from its environment. */
function nameFlagsOfDev(explanation: Explanation): Explanation {
  const rename = (fix: string): string => {
    const [, name = '', value] = /^(\w+)=(\S*)$/.exec(fix) ?? [];
    if (value === undefined) return fix;
    return audienceNames.has(name) ? `portcullis dev --audience ${value}` : `${fix} portcullis dev`;
  };
  const checks = explanation.checks.map((check) => ({
    ...check,
    ...(check.causes && { causes: check.causes.map((cause) => ({ ...cause, fix: rename(cause.fix) })) }),
  }));
  return { ...explanation, checks };
}

/** Explains a decision by its checks, or else by the facts of its log line. Throws `TypeError` without either. */
export function explainDetail(detail: DecisionDetail): Explanation {
  // The service writes a complete explanation.
  return (detail.explanation as Explanation | undefined) ?? explainByFacts(detail);
}

function explainByFacts({ decision, facts }: DecisionDetail): Explanation {
  const { reason, status, at } = decision;
  const fact = (name: string): string | undefined => facts.find(([each]) => each === name)?.[1];
  const [expected, received, path, nearest] = ['expected', 'received', 'path', 'nearest'].map(fact);
  const seen = received ?? (path === undefined ? undefined : `${decision.method} ${fact('host') ?? ''}${path}`);
  if (reason === undefined || !isReason(reason)) {
    throw new TypeError('id: no token was validated for this request, so there are no checks');
  }
  return {
    ...{ version: 1, verdict: 'refused', reason, status, at },
    against: { issuer: [], audiences: [], keys: 'none' },
    checks: [
      {
        ...{ id: 'log', group: 'log line', verdict: 'fail', reason },
        ...(expected !== undefined && { expected }),
        ...(seen !== undefined && { seen }),
        ...(nearest !== undefined && { why: `nearly matched: ${nearest}` }),
        fix: failures[reason].fix,
        docs: `refusals.md#${reason}`,
      },
    ],
  };
}
