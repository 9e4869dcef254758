import { type Explanation, verdictStatuses } from '../explain/explanation.ts';
import { readInput } from '../explain/input/read-input.ts';
import { formatExplanation } from '../explain/terminal-text.ts';
import { failures } from '../failures.ts';
import { findLikeliest } from '../likeliest-name.ts';
import type { Policy } from '../policy/policy.ts';
import { exitCodes, StartFailure } from '../server/lifecycle/exit.ts';
import { readCall } from './explain/explained-call.ts';
import { explainById, type NamedCall } from './explain/explained-id.ts';
import { labelLogLine } from './explain/log-labels.ts';
import { explainLogLine } from './explain/log-line.ts';
import { openExplainer, UsageError } from './explain/opening.ts';
import { readText } from './explain/read-text.ts';
import { formatReasonPage, isReason } from './explain/reason-page.ts';
import { asksForHelp } from './help.ts';
import { type FlagKinds, type SplitFlags, splitFlags } from './split-flags.ts';
import { readTerminalStyle } from './terminal-style.ts';

type Environment = NodeJS.ProcessEnv;

const flagKinds: FlagKinds = {
  file: 'text',
  entry: 'text',
  issuer: 'text',
  audience: 'texts',
  jwks: 'text',
  server: 'text',
  id: 'text',
  admin: 'text',
  rules: 'text',
  show: 'texts',
  at: 'text',
  method: 'text',
  url: 'text',
  scope: 'texts',
  permission: 'texts',
  expect: 'text',
  offline: 'switch',
  json: 'switch',
};

const usage = `portcullis explain REASON prints what a reason means and how to fix it.
portcullis explain reads a token, a header line, a curl command (or fetch, PowerShell, HTTPie), a HAR, a collection of
Postman, a request or a log line from standard input and shows every check. Nothing in it is run. Flags, besides those
of serve, whose settings are in force:
  --file FILE            reads the file instead of standard input
  --entry N              of a HAR or collection; default: the first call that was answered with 401 or 403
  --issuer URL --audience TEXT   instead of settings
  --server URL           issuer and audience from the metadata that the service publishes
  --id ID --admin URL    a call that was just refused: asks the console of the service, and reads no input
  --rules FILE           the rules of a gate, instead of settings: judges as the gate would, and names the rule
  --jwks FILE            the keys of the issuer; nothing is fetched
  --offline              fetches nothing
  --at TIME              judges for this time: ISO 8601, or seconds since 1970
  --method METHOD --url URL      of the call, if the text does not tell
  --scope "a b" --permission P   what the route asks for
  --show CLAIM           shows this claim too; it may be personal
  --expect REASON        exit status 0 if this is the reason (or admitted), else 1
  --json                 prints JSON
`;

/** `portcullis explain`: exit status 0 admitted, 1 refused, 69 undecided, 64 usage, 78 settings. */
export async function runExplain(args: readonly string[], environment: Environment): Promise<number> {
  if (asksForHelp(args)) {
    process.stdout.write(usage);
    return exitCodes.ok;
  }
  const [first] = args;
  if (args.length === 1 && first !== undefined && isReason(first)) {
    process.stdout.write(`${formatReasonPage(first)}\n`);
    return exitCodes.ok;
  }
  const flags = splitFlags(args, flagKinds);
  try {
    if (flags === undefined) throw new UsageError('a flag lacks its value, or stands twice');
    if (flags.texts.has('issuer') && !flags.texts.has('audience')) throw new UsageError('--issuer needs --audience');
    if (flags.rest.some((arg, index) => !arg.startsWith('-') && !flags.rest[index - 1]?.startsWith('--'))) {
      // Arguments stand in the list of processes and in the history of the shell.
      const meant = first === undefined ? undefined : findLikeliest(first, Object.keys(failures), 1);
      throw new UsageError(
        meant === undefined
          ? 'that is no reason (docs/refusals.md lists them). A token is never given as an argument, since others can read it there: pipe it in'
          : `there is no such reason. Did you mean ${meant}?`,
      );
    }
    return await explainInput(flags, environment);
  } catch (error) {
    if (error instanceof StartFailure) {
      process.stderr.write(`portcullis: ${error.message}\n`);
      return error.exitCode;
    }
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`portcullis: ${error.message}${error.message.endsWith('?') ? '' : '.'}\n${usage}`);
    return exitCodes.usage;
  }
}

async function explainInput(flags: SplitFlags, environment: Environment): Promise<number> {
  const one = (name: string): string | undefined => flags.texts.get(name)?.[0];
  const at = readTime(one('at'));
  const policy = readPolicy(flags);
  const [id, admin] = [one('id'), one('admin')];
  if (id !== undefined || admin !== undefined) {
    if (id === undefined || admin === undefined) throw new UsageError('--id and --admin belong together');
    return report(await explainNamed({ id, admin }, environment), flags, environment);
  }
  const text = await readText(one('file'));
  const input = readInput(text, { entry: readEntry(one('entry')) });
  if (input.kind === 'unread') {
    if (text.trim() === '') throw new UsageError(input.problem.replace(/\.$/, ''));
    process.stderr.write(`portcullis: ${input.problem} What it reads: portcullis explain --help\n`);
    return exitCodes.usage;
  }
  if (input.kind === 'log-line') {
    if (flags.texts.has('show')) throw new UsageError('a log line has no claims to show');
    const explained = explainLogLine(input, labelLogLine(input, flags, environment));
    if (explained === undefined) throw new UsageError('the log line has a reason that this version does not know');
    return report(explained, flags, environment);
  }
  const opened = await openExplainer(flags, environment, input);
  if (typeof opened === 'number') return opened;
  try {
    const [method, url] = [one('method'), one('url')];
    const { request, connection } = readCall(input, { method, url });
    const show = flags.texts.get('show') ?? [];
    const call = { request, connection, kind: input.kind, at, policy, show };
    const { explanation, keysProblems } = await opened.explain(call);
    for (const problem of keysProblems) {
      process.stderr.write(`portcullis: no keys. ${problem} To find out why: portcullis doctor\n`);
    }
    return report(explanation, flags, environment);
  } finally {
    opened.close();
  }
}

/** Every problem of it is told by this program. */
async function explainNamed(call: NamedCall, environment: Environment): Promise<Explanation> {
  try {
    return await explainById(call, environment);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new UsageError(error.message);
  }
}

function report(explanation: Explanation, flags: SplitFlags, environment: Environment): number {
  const expected = flags.texts.get('expect')?.[0];
  const outcome = explanation.reason ?? explanation.verdict;
  const status =
    expected === undefined ? verdictStatuses[explanation.verdict] : outcome === expected ? exitCodes.ok : 1;
  const style = readTerminalStyle({ isTTY: process.stdout.isTTY, environment });
  process.stdout.write(
    flags.switches.has('json')
      ? `${JSON.stringify(explanation)}\n`
      : `${formatExplanation(explanation, style)}exit ${status}\n`,
  );
  return status;
}

function readEntry(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new UsageError('--entry takes a number from 1');
  return Number(text);
}

function readTime(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const seconds = /^\d{1,11}$/.test(text) ? Number(text) : Date.parse(text) / 1000;
  if (Number.isNaN(seconds))
    throw new UsageError('--at takes a time as in 2026-11-22T10:41:00Z, or seconds since 1970');
  return seconds;
}

function readPolicy({ texts }: SplitFlags): Policy<unknown> | undefined {
  const scopes = (texts.get('scope') ?? []).flatMap((text) => text.split(' ')).filter((scope) => scope !== '');
  const permissions = texts.get('permission') ?? [];
  if (scopes.length === 0 && permissions.length === 0) return undefined;
  return { ...(scopes.length > 0 && { scopes }), ...(permissions.length > 0 && { permissions }) };
}
