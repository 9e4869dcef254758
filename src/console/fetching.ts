import type { ConsoleState, DecisionDetail, TryOrder, TryResult } from './wire.ts';

/** Milliseconds between questions for what is on its way, and how many are asked. */
const pause = 150;
const maxAsked = 14;

/** The service as it is now; `undefined` if it does not answer. */
export async function fetchState(): Promise<ConsoleState | undefined> {
  return read<ConsoleState>(await fetch('/console/api/state').catch(() => undefined));
}

/** Milliseconds after which a call that was just answered is surely told of. */
export const tellingDelay = 250;

/** One decision, with its checks if there are any; `undefined` if it is not kept any more. */
export async function fetchDecision(id: string, delay = 0): Promise<DecisionDetail | undefined> {
  let found: DecisionDetail | undefined;
  await new Promise((resolve) => setTimeout(resolve, delay));
  for (let asked = 0; asked < maxAsked; asked++) {
    const answer = await fetch(`/console/api/decisions/${encodeURIComponent(id)}`).catch(() => undefined);
    found = (await read<DecisionDetail>(answer)) ?? found;
    // The decision comes first, and its checks a moment later; some have none.
    if (found?.explanation !== undefined || (found !== undefined && asked > 4)) return found;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
  return found;
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
