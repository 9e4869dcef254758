import { parseArgs } from 'node:util';
import type { ExplainedCheck } from '../explain/explanation.ts';
import { formatFirst, type TerminalStyle } from '../explain/terminal-text.ts';
import type { DecisionDetail, StreamedDecisions } from '../server/console/wire.ts';
import { exitCodes } from '../server/lifecycle/exit.ts';
import { parseOptionsOf } from './commands/command-flags.ts';
import { commandTable } from './commands/command-table.ts';
import { refuseUsage } from './commands/help.ts';
import { type ConsoleClient, openConsoleClient } from './explain/console-client.ts';
import { explainDetail } from './explain/explained-id.ts';
import { describeFlagError } from './flag-problem.ts';
import { readTerminalStyle } from './terminal-style.ts';

/** Maximum number of refusals that are not printed yet. */
const maxPending = 100;

/** `portcullis watch`: prints refusals until a signal. Exit status 0, 64 usage, 69 if the service stops. */
export async function runWatch(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const flags = readFlags(args);
  if (typeof flags === 'string') return refuseUsage('watch', flags);
  const { admin, 'console-key-file': keyFile, json: isJson = false } = flags;
  const style = readTerminalStyle({ isTTY: process.stdout.isTTY, environment });
  try {
    const client = await openConsoleClient({ admin, keyFile, settings: [] }, environment);
    const stop = new AbortController();
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
    // The reader of a pipe has ended.
    process.stdout.once('error', () => stop.abort());
    const events = await client.openEvents(stop.signal);
    process.stderr.write(`Refusals of ${client.origin}, as they happen. Stop with Ctrl-C.\n`);
    await follow(events, client, (detail) => (isJson ? formatJson(detail) : formatRefusal(detail, style)));
    if (stop.signal.aborted) return exitCodes.ok;
    process.stderr.write('portcullis: the service has stopped, or no longer sends decisions.\n');
    return exitCodes.unavailable;
  } catch (error) {
    if (error instanceof TypeError) return refuseUsage('watch', `${error.message}.`);
    throw error;
  }
}

function readFlags(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: parseOptionsOf(commandTable.watch.flags) }).values;
  } catch (error) {
    return describeFlagError(error, Object.keys(commandTable.watch.flags));
  }
}

/** Prints each refusal of the stream until it ends. */
async function follow(
  events: AsyncIterable<string>,
  client: ConsoleClient,
  format: (detail: DecisionDetail) => string,
): Promise<void> {
  let pending = 0;
  let printed = Promise.resolve();
  const print = async (id: string): Promise<void> => {
    const detail = await client.findDecision(id).catch(() => undefined);
    pending--;
    if (detail !== undefined) process.stdout.write(format(detail));
  };
  for await (const { decisions, dropped } of readDecisions(events)) {
    const refused = decisions.filter(({ reason }) => reason !== undefined);
    const taken = refused.slice(0, maxPending - pending);
    const missing = dropped + refused.length - taken.length;
    if (missing > 0)
      process.stderr.write(`portcullis: ${missing} decisions are missing, because too many came at once.\n`);
    pending += taken.length;
    for (const { id } of taken) printed = printed.then(() => print(id));
  }
  await printed;
}

/** Reads the new decisions of an event stream. */
async function* readDecisions(events: AsyncIterable<string>): AsyncIterable<StreamedDecisions> {
  let text = '';
  for await (const chunk of events) {
    const parts = (text + chunk).split('\n\n');
    text = parts.pop() ?? '';
    for (const part of parts) {
      const [, data] = /^event: decisions\ndata: (.*)$/.exec(part) ?? [];
      if (data !== undefined) yield JSON.parse(data) as StreamedDecisions; // the service writes this shape
    }
  }
}

function formatRefusal(detail: DecisionDetail, style: TerminalStyle): string {
  const { id, at, method, route, path, status, outcome, reason } = detail.decision;
  const check = findFailed(detail);
  const verdict = outcome === 'would_refuse' ? 'would refuse' : 'refused';
  const first = check === undefined ? [`${verdict}: ${reason}`] : formatFirst(verdict, check, style);
  return `${at}  ${status} ${method} ${path ?? route}  id ${id}\n${first.join('\n')}\n\n`;
}

function formatJson(detail: DecisionDetail): string {
  const { expected, seen, causes, fix } = findFailed(detail) ?? {};
  return `${JSON.stringify({ ...detail.decision, expected, seen, causes, fix: fix ?? detail.refusal?.fix })}\n`;
}

/** The check that failed; from the facts of the log if the checks were not evaluated. */
function findFailed(detail: DecisionDetail): ExplainedCheck | undefined {
  try {
    return explainDetail(detail).checks.find(({ verdict }) => verdict === 'fail');
  } catch {
    // A reason without a check, such as an error of this program.
    return undefined;
  }
}
