import type { ConsoleState, DecisionDetail, PasteResult } from '../../server/console/wire.ts';
import type { TryOptions, TryResult } from './try-wire.ts';

export async function fetchState(): Promise<ConsoleState | undefined> {
  return read<ConsoleState>(await fetch('/console/api/state').catch(() => undefined));
}

export async function fetchDecision(id: string): Promise<DecisionDetail | undefined> {
  const response = await fetch(`/console/api/decisions/${encodeURIComponent(id)}`).catch(() => undefined);
  return read<DecisionDetail>(response);
}

export async function sendTry(options: TryOptions): Promise<TryResult> {
  const problem = (text: string): TryResult => ({ requests: [], command: '', remark: '', problem: text });
  const body = JSON.stringify(options);
  const headers = { 'content-type': 'application/json' };
  const response = await fetch('/console/api/try', { method: 'POST', headers, body }).catch(() => undefined);
  if (response === undefined) return problem('The service does not respond.');
  if (!response.ok) return problem(await response.text());
  return (await response.json()) as TryResult; // the service writes this shape
}

export async function sendPaste(text: string): Promise<PasteResult> {
  const headers = { 'content-type': 'text/plain' };
  const response = await fetch('/console/api/paste', { method: 'POST', headers, body: text }).catch(() => undefined);
  if (response === undefined) return { problem: 'The service does not respond.' };
  if (!response.ok) return { problem: await response.text() };
  return (await response.json()) as PasteResult; // the service writes this shape
}

async function read<T>(response: Response | undefined): Promise<T | undefined> {
  return response?.ok ? ((await response.json()) as T) : undefined; // the service writes this shape
}
