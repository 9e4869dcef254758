import { setTimeout as sleep } from 'node:timers/promises';
import type { ExplainedCheck } from '../explain/explained-check.ts';
import { formatFirst, type TerminalStyle } from '../explain/terminal-text.ts';
import type { DecisionDetail } from '../server/console/wire.ts';
import { exitCodes } from '../server/lifecycle/exit.ts';
import { UsageError } from './commands/failure.ts';
import type { Flags } from './commands/flags.ts';
import { type ConsoleClient, type ConsoleEvent, openConsoleClient } from './explain/console-client.ts';
import { explainDetail } from './explain/explained-id.ts';
import { readTerminalStyle } from './terminal-style.ts';

/** Maximum number of refusals that are not printed yet. */
const maxPending = 100;

/** Seconds before the first attempt to reconnect. Each failure doubles them. */
const minWait = 1;
const maxWait = 30;
/** Number of printed decisions that are recognised after a new connection. The service keeps fewer. */
const maxKnown = 1000;

/** `portcullis watch`: prints refusals until a signal. Exit status 0, 64 usage. */
export async function runWatch({ values }: Flags<'watch'>, environment: NodeJS.ProcessEnv): Promise<number> {
  const { admin, 'console-key-file': keyFile, json: isJson } = values;
  const style = readTerminalStyle(environment);
  const format = (detail: DecisionDetail): string => (isJson ? formatJson(detail) : formatRefusal(detail, style));
  const stop = new AbortController();
  const known = new Set<string>();
  // A restarted service has another key, and a restarted dev may have other ports.
  const connect = async (): Promise<Connection> => {
    const client = await openConsoleClient({ admin, keyFile, settings: [] }, environment);
    return { client, events: await client.openEvents(stop.signal) };
  };
  let connection: Connection | undefined = await connect();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  // The reader of a pipe has ended.
  process.stdout.once('error', () => stop.abort());
  process.stderr.write(`Refusals of ${connection.client.origin}, as they happen. Stop with Ctrl-C.\n`);
  for (let isFirst = true; connection !== undefined; isFirst = false) {
    await follow(connection, known, isFirst, format);
    if (stop.signal.aborted) break;
    process.stderr.write('portcullis: the service has stopped, or no longer sends decisions. Reconnecting.\n');
    connection = await reconnect(connect, stop.signal);
  }
  return exitCodes.ok;
}

type Connection = Readonly<{ client: ConsoleClient; events: AsyncIterable<ConsoleEvent> }>;

/** Tries until a service responds. Returns `undefined` after a signal. */
async function reconnect(connect: () => Promise<Connection>, signal: AbortSignal): Promise<Connection | undefined> {
  let reported = '';
  for (let wait = minWait; ; wait = Math.min(2 * wait, maxWait)) {
    try {
      await sleep(wait * 1000, undefined, { signal });
      const connection = await connect();
      process.stderr.write(`Connected again to ${connection.client.origin}.\n`);
      return connection;
    } catch (error) {
      if (signal.aborted) return undefined;
      if (!(error instanceof UsageError)) throw error;
      if (error.message !== reported) process.stderr.write(`Reconnecting: ${error.message}\n`);
      reported = error.message;
    }
  }
}

/** Prints each refusal of the stream until it ends. Refusals before a first connection are only recorded. */
async function follow(
  { client, events }: Connection,
  known: Set<string>,
  isFirst: boolean,
  format: (detail: DecisionDetail) => string,
): Promise<void> {
  let pending = 0;
  let printed = Promise.resolve();
  const print = async (id: string): Promise<void> => {
    const detail = await client.findDecision(id).catch(() => undefined);
    pending--;
    if (detail !== undefined) process.stdout.write(format(detail));
  };
  for await (const { type, streamed } of events) {
    const { decisions, dropped } = streamed;
    const refused = decisions.filter(({ id, reason }) => reason !== undefined && !known.has(id));
    for (const { id } of refused) known.add(id);
    for (const id of [...known].slice(0, -maxKnown)) known.delete(id);
    if (type === 'recent' && isFirst) continue;
    const taken = refused.slice(0, maxPending - pending);
    const missing = dropped + refused.length - taken.length;
    if (missing > 0)
      process.stderr.write(`portcullis: ${missing} decisions are missing, because too many came at once.\n`);
    pending += taken.length;
    for (const { id } of taken) printed = printed.then(() => print(id));
  }
  await printed;
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
