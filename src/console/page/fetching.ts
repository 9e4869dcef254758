import type { ConsoleState, DecisionDetail } from '../../server/console/wire.ts';
import type { TryOrder, TryResult } from './try-wire.ts';

/** The service as it is now; `undefined` if it does not answer. */
export async function fetchState(): Promise<ConsoleState | undefined> {
  return read<ConsoleState>(await fetch('/console/api/state').catch(() => undefined));
}

/** One decision, with its checks if there are any; `undefined` if it is not kept any more. */
export async function fetchDecision(id: string): Promise<DecisionDetail | undefined> {
  const answer = await fetch(`/console/api/decisions/${encodeURIComponent(id)}`).catch(() => undefined);
  return read<DecisionDetail>(answer);
}

/** Sends a call with a token of the local provider. */
export async function sendTry(order: TryOrder): Promise<TryResult> {
  const problem = (text: string): TryResult => ({ calls: [], command: '', remark: '', problem: text });
  const body = JSON.stringify(order);
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch('/console/api/try', { method: 'POST', headers, body }).catch(() => undefined);
  if (answer === undefined) return problem('The service does not answer.');
  if (!answer.ok) return problem(await answer.text());
  return (await answer.json()) as TryResult; // the service writes this shape
}

async function read<T>(answer: Response | undefined): Promise<T | undefined> {
  return answer?.ok ? ((await answer.json()) as T) : undefined; // the service writes this shape
}
