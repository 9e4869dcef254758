import { explainResponse, formatResponse } from '../explain/explained-response.ts';
import { type Explanation, rankExplanation, verdictStatuses } from '../explain/explanation.ts';
import { readCall } from '../explain/input/explained-call.ts';
import type { Input } from '../explain/input/input.ts';
import { readInput } from '../explain/input/read-input.ts';
import { formatExplanation } from '../explain/terminal-text.ts';
import type { ResourceRequest } from '../http/request.ts';
import { findLikeliest } from '../likeliest-name.ts';
import type { Policy } from '../policy/policy.ts';
import { exitCodes, StartFailure } from '../server/lifecycle/exit.ts';
import { showText } from '../shown-text.ts';
import { commandTable } from './commands/command-table.ts';
import { refuseUsage } from './commands/help.ts';
import { type AnyCall, explainById } from './explain/explained-id.ts';
import { labelLogLine } from './explain/labels.ts';
import { explainLogLine, findLogLine } from './explain/log-line.ts';
import { openExplainer, readText, UsageError } from './explain/opening.ts';
import { formatPage, pageNames } from './explain/reason-page.ts';
import { type SplitFlags, splitFlags } from './split-flags.ts';
import { readTerminalStyle } from './terminal-style.ts';

type Environment = NodeJS.ProcessEnv;

/** `portcullis explain`: exit status 0 admitted, 1 refused, 69 undecided, 64 usage, 78 settings. */
export async function runExplain(args: readonly string[], environment: Environment): Promise<number> {
  const [first] = args;
  const page = args.length === 1 && first !== undefined ? formatPage(first) : undefined;
  if (page !== undefined) {
    process.stdout.write(`${page}\n`);
    return exitCodes.ok;
  }
  const flags = splitFlags(args, commandTable.explain.flags);
  try {
    if (flags === undefined) throw new UsageError('a flag lacks its value, or is duplicated');
    if (flags.texts.has('issuer') && !flags.texts.has('audience')) throw new UsageError('--issuer needs --audience');
    if (flags.rest.some((arg, index) => !arg.startsWith('-') && !flags.rest[index - 1]?.startsWith('--'))) {
      // Other users can read arguments in the list of processes and in the history of the shell.
      const meant = first === undefined ? undefined : findLikeliest(first, pageNames, 1);
      throw new UsageError(
        meant === undefined
          ? 'that is not a reason, a cause or a code of doctor. Pipe a token in: other users can read arguments'
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
    return refuseUsage('explain', `${error.message}${error.message.endsWith('?') ? '' : '.'}`);
  }
}

async function explainInput(flags: SplitFlags, environment: Environment): Promise<number> {
  const one = (name: string): string | undefined => flags.texts.get(name)?.[0];
  const at = readTime(one('at'));
  const policy = readPolicy(flags);
  const [id, admin, file] = [one('id'), one('admin'), one('file')];
  if (id !== undefined || admin !== undefined) {
    if (id === undefined) throw new UsageError('--admin needs --id');
    if (file === undefined) {
      const call = { id, admin, keyFile: one('console-key-file'), settings: flags.rest };
      return report(await explainNamed(call, environment), flags, environment);
    }
    if (admin !== undefined) throw new UsageError('--admin and --file exclude each other');
    const line = findLogLine(await readText(file), id);
    if (line === undefined) throw new UsageError('the log has no line with this id');
    const explained = explainLogLine(line, labelLogLine(line, flags, environment));
    if (explained === undefined) throw new UsageError('the log line with this id is not of a refusal');
    return report(explained, flags, environment);
  }
  // A URL without input is a request without credentials.
  const isOptional = one('url') !== undefined && file === undefined;
  const text = isOptional && process.stdin.isTTY ? '' : await readText(file);
  const input: Input =
    isOptional && text.trim() === ''
      ? { kind: 'request', method: undefined, url: undefined, headers: [] }
      : readInput(text, { entry: readEntry(one('entry')) });
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
  if (input.kind === 'response') {
    const explanation = explainResponse(input, at ?? Date.now() / 1000);
    const isText = explanation.verdict === 'undecided' && !flags.switches.has('json');
    return report(explanation, flags, environment, isText ? formatResponse(explanation, input) : undefined);
  }
  const calls = input.kind === 'calls' ? input.calls : [input];
  const [first] = calls;
  const opened = first === undefined ? exitCodes.usage : await openExplainer(flags, environment, first);
  if (typeof opened === 'number') return opened;
  try {
    const [method, url] = [one('method'), one('url')];
    const show = flags.texts.get('show') ?? [];
    const explained: ExplainedCall[] = [];
    const problems = new Set<string>();
    for (const each of calls) {
      const read = readCall(each, { method, url });
      const { request } = read;
      const call = { ...read, kind: each.kind, at, policy, show };
      const { explanation, keysProblems } = await opened.explain(call);
      for (const problem of keysProblems) problems.add(problem);
      const { repairs } = each;
      explained.push({ request, explanation: { ...explanation, ...(repairs !== undefined && { repairs }) } });
    }
    for (const problem of problems) {
      process.stderr.write(`portcullis: no keys. ${problem} To find out why: portcullis doctor\n`);
    }
    return reportAll(explained, flags, environment);
  } finally {
    opened.close();
  }
}

interface ExplainedCall {
  readonly request: ResourceRequest;
  readonly explanation: Explanation;
}

/** Reports every request. The exit status is the status of the first, which is refused if any is. */
function reportAll(explained: readonly ExplainedCall[], flags: SplitFlags, environment: Environment): number {
  const sorted = explained.toSorted((a, b) => rankExplanation(a.explanation) - rankExplanation(b.explanation));
  const statuses = sorted.map(({ request, explanation }, index) => {
    const { method, url } = request;
    if (sorted.length > 1 && !flags.switches.has('json')) {
      const path = showText(new URL(url).pathname, 60);
      process.stdout.write(`${index === 0 ? '' : '\n'}request ${index + 1} of ${sorted.length}: ${method} ${path}\n`);
    }
    return report(explanation, flags, environment);
  });
  return statuses[0] ?? exitCodes.usage;
}

async function explainNamed(call: AnyCall, environment: Environment): Promise<Explanation> {
  try {
    return await explainById(call, environment);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new UsageError(error.message);
  }
}

/** `text` replaces the usual text of an explanation. */
function report(explanation: Explanation, flags: SplitFlags, environment: Environment, text?: string): number {
  const expected = flags.texts.get('expect')?.[0];
  const outcome = explanation.reason ?? explanation.verdict;
  const status =
    expected === undefined ? verdictStatuses[explanation.verdict] : outcome === expected ? exitCodes.ok : 1;
  const style = readTerminalStyle({ isTTY: process.stdout.isTTY, environment });
  process.stdout.write(
    flags.switches.has('json')
      ? `${JSON.stringify(explanation)}\n`
      : `${text ?? formatExplanation(explanation, style)}exit ${status}\n`,
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
