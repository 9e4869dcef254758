import { describe, expect, it } from 'vitest';
import { createResourceServer } from '../../src/core/resource-server/resource-server.ts';
import { explain } from '../../src/explain/explain.ts';
import type { Explanation } from '../../src/explain/explanation.ts';
import { readCall } from '../../src/explain/input/explained-call.ts';
import type { CallInput } from '../../src/explain/input/input.ts';
import { readInput } from '../../src/explain/input/read-input.ts';
import { findReasons } from '../../src/explain/input/response.ts';
import { formatExplanation } from '../../src/explain/terminal-text.ts';
import { findLeaks } from '../support/leaks.ts';
import { issuer, type PastedInput, pastedInputs } from './pasted-inputs.ts';

interface Outcome {
  /** The first thing that the explanation names; `undefined` if it names none. */
  readonly named: string | undefined;
  readonly certainty: string | undefined;
  readonly certain: readonly string[];
  readonly explanation?: Explanation;
}

const nothing: Outcome = { named: undefined, certainty: undefined, certain: [] };

async function explainCall(input: CallInput, { server, scope }: PastedInput): Promise<Explanation> {
  const opened = createResourceServer({
    ...{ issuers: [issuer], audience: issuer.audience, ...server },
  } as Parameters<typeof createResourceServer>[0]);
  const { request, connection } = readCall(input, { method: undefined, url: undefined });
  const policy = scope === undefined ? {} : { scopes: [scope] };
  return explain(opened, request, policy, connection, { kind: input.kind });
}

async function findOutcome(pasted: PastedInput): Promise<Outcome> {
  const input = readInput(pasted.input);
  if (input.kind === 'response') {
    const [reason] = findReasons(input);
    return {
      ...nothing,
      named: input.foreign?.reason ?? reason ?? (input.id === undefined ? undefined : 'request_id'),
    };
  }
  if (input.kind === 'unread') return { ...nothing, named: input.kind };
  if (input.kind === 'log-line') return { ...nothing, named: String(input.fields['reason']) };
  const calls = input.kind === 'calls' ? input.calls : 'headers' in input ? [input] : [];
  const all = await Promise.all(calls.map((call) => explainCall(call, pasted)));
  // As the command does: first the requests that have credentials and are refused.
  const explanation = all.find(({ checks }) => checks[1]?.verdict === 'pass' && isRefused(checks)) ?? all[0];
  if (explanation === undefined) return nothing;
  const failed = explanation.checks.filter(({ verdict }) => verdict === 'fail');
  const [cause] = failed[0]?.causes ?? [];
  const [repair] = 'repairs' in input ? (input.repairs ?? []) : [];
  const passed = explanation.verdict === 'admitted' ? (repair?.id ?? 'admitted') : undefined;
  return {
    named: passed ?? cause?.id,
    certainty: cause?.certainty,
    certain: failed
      .flatMap(({ causes = [] }) => causes)
      .filter(({ certainty }) => certainty === 'certain')
      .map(({ id }) => id),
    explanation,
  };
}

function isRefused(checks: Explanation['checks']): boolean {
  return checks.some(({ verdict }) => verdict === 'fail');
}

describe('inputs that users paste', async () => {
  const all = await Promise.all(pastedInputs.map(async (pasted) => ({ pasted, outcome: await findOutcome(pasted) })));

  it.each(all)('$pasted.name → $pasted.cause', ({ pasted: { cause, certainty, also = [] }, outcome }) => {
    expect([outcome.named, outcome.certainty]).toEqual([cause, certainty]);
    expect(outcome.certain.filter((id) => id !== cause && !also.includes(id))).toEqual([]);
  });

  it('output: cause in the first line, 80 columns, no part of the credentials', () => {
    for (const { pasted, outcome } of all) {
      if (outcome.explanation === undefined) continue;
      const text = formatExplanation(outcome.explanation);
      const [cause] = outcome.explanation.checks.find(({ verdict }) => verdict === 'fail')?.causes ?? [];
      const flat = text.replaceAll(/\s+/g, ' ');
      if (cause?.note !== undefined) expect(flat).toContain(`: ${cause.note} cause ${cause.id} (${cause.certainty})`);
      const long = text.split('\n').filter((line) => line.length > 80 && !/\S{60}/.test(line));
      expect([pasted.name, long]).toEqual([pasted.name, []]);
      const secrets = pasted.input.match(/ey[\w-]+\.[\w-]+\.[\w-]+/g) ?? [];
      expect(
        findLeaks(
          secrets.flatMap((secret) => secret.split('.').slice(2)),
          [text],
        ),
      ).toEqual([]);
    }
  });
});
