import { createReadStream } from 'node:fs';
import type { ResourceRequest } from '../core/http/request.ts';
import { findLikeliest } from '../core/likeliest-name.ts';
import { readBytes } from '../core/outbound/outbound.ts';
import type { Policy } from '../core/policy/policy.ts';
import { showText } from '../core/shown-text.ts';
import { addResponse, explainResponse, formatResponse } from '../explain/explained-response.ts';
import { addNext, type Explanation, rankExplanation, verdictStatuses } from '../explain/explanation.ts';
import { namesOf } from '../explain/facts.ts';
import { readCall } from '../explain/input/explained-call.ts';
import type { CallInput, Input } from '../explain/input/input.ts';
import { emptyInput, readInput } from '../explain/input/read-input.ts';
import { formatExplanation } from '../explain/terminal-text.ts';
import { explainUnserved } from '../explain/unserved.ts';
import { exitCodes } from '../server/lifecycle/exit.ts';
import { fail, UsageError } from './commands/failure.ts';
import { type Flags, readTime } from './commands/flags.ts';
import { explainById } from './explain/explained-id.ts';
import { explainLogLine, findLogLine, labelLogLine } from './explain/log-line.ts';
import { openExplainer } from './explain/opening.ts';
import { formatPage, pageNames } from './explain/reason-page.ts';
import { readTerminalStyle } from './terminal-style.ts';

type Values = Flags<'explain'>['values'];
type Environment = NodeJS.ProcessEnv;

/** Explains a reason, or the input. Exit status 0 admitted, 1 refused, 69 undecided, 64 usage, 78 settings. */
export async function runExplain(flags: Flags<'explain'>, environment: Environment): Promise<number> {
  const { values, rest } = flags;
  refuseRivals(flags);
  const isAlone = rest.length === 1 && Object.keys(values).length === 0;
  const page = isAlone ? formatPage(rest[0] ?? '') : undefined;
  if (page !== undefined) {
    process.stdout.write(`${page}\n`);
    return exitCodes.ok;
  }
  if (values.issuer !== undefined && values.audience === undefined) throw new UsageError('--issuer needs --audience.');
  const word = rest.find((arg, index) => !arg.startsWith('-') && !rest[index - 1]?.startsWith('--'));
  if (word !== undefined) throw refuseWord(word);
  return reportAll(await explainInput(flags, environment), values, environment);
}

/** Flags that contradict another one. */
const rivals: Readonly<Partial<Record<keyof Values, readonly (keyof Values)[]>>> = {
  rules: ['issuer', 'audience', 'server'],
  // Its metadata names the issuer, and is fetched.
  server: ['issuer', 'offline'],
  admin: ['file'],
};

function refuseRivals({ values, rest }: Flags<'explain'>): void {
  const refuse = (flag: string, rival: string): never => {
    throw new UsageError(`--${flag} and ${rival} exclude each other: remove one.`);
  };
  for (const [flag, others] of Object.entries(rivals)) {
    const rival = others.find((name) => values[name] !== undefined);
    if (Object.hasOwn(values, flag) && rival !== undefined) refuse(flag, `--${rival}`);
  }
  const named = (['issuer', 'server'] as const).find((name) => values[name] !== undefined);
  const setting = rest.find((arg) => arg.startsWith('--'));
  if (named !== undefined && setting !== undefined) refuse(named, setting.replace(/=.*$/s, ''));
}

/** Flags that describe a request, its token, or how it is evaluated. */
const ofRequest = [
  ...(['issuer', 'audience', 'server', 'jwks', 'offline', 'entry', 'method', 'url'] as const),
  ...(['scope', 'permission', 'at', 'show'] as const),
];

/** Notes flags without an effect on this input. Stdout has the explanation only. */
function noteIdle(values: Values, input: string, flags: readonly (keyof Values)[] = ofRequest): void {
  const idle = flags.filter((name) => values[name] !== undefined).map((name) => `--${name}`);
  if (idle.length > 0) process.stderr.write(`portcullis: no effect on ${input}: ${idle.join(', ')}.\n`);
}

/** Other users can read arguments in the list of processes and in the history of the shell. */
function refuseWord(word: string): UsageError {
  if (/^(?:bearer |dpop )?ey[\w-]+\.|^[\w.~+/=-]{32,}$/i.test(word)) {
    return new UsageError('that looks like a token; pipe it in: other users can read arguments.');
  }
  const meant = findLikeliest(word, pageNames, 1);
  return new UsageError(
    meant === undefined
      ? 'that is not a reason, a cause, a check or a problem of doctor. Pipe a token in: other users can read arguments.'
      : `there is no such reason. Did you mean ${meant}?`,
  );
}

const others = 'Pipe in one line to explain another, or name its id: --id ID --file LOG.';

interface Explained {
  readonly explanation: Explanation;
  /** Replaces the usual text of the explanation. */
  readonly text?: string;
  readonly request?: ResourceRequest;
}

async function explainInput(flags: Flags<'explain'>, environment: Environment): Promise<readonly Explained[]> {
  const { values, rest: settings } = flags;
  const { id, admin, file, 'console-key-file': keyFile } = values;
  const at = readTime('at', values.at) ?? Date.now() / 1000;
  const policy = readPolicy(values);
  if (id === undefined && admin !== undefined) throw new UsageError('--admin needs --id.');
  if (id !== undefined) noteIdle(values, 'a decision that was made');
  if (id !== undefined && file === undefined) {
    return [{ explanation: await explainById(id, { admin, keyFile, settings }, environment) }];
  }
  const input = id === undefined ? await readWrittenInput(values) : findLogLine(await readText(file), id);
  if (input === undefined) throw new UsageError('the log has no line with this id.');
  switch (input.kind) {
    case 'unread':
      if (input === emptyInput) throw new UsageError(input.problem);
      throw fail(`${input.problem} What it reads: portcullis explain --help`, exitCodes.usage);
    case 'log-line': {
      if (id === undefined) noteIdle(values, 'a log line');
      if ((input.count ?? 1) > 1) {
        process.stderr.write(`portcullis: ${input.count} log lines of refusals; the last is explained. ${others}\n`);
      }
      const explanation = explainLogLine(input, labelLogLine(input, flags, environment));
      if (explanation !== undefined) return [{ explanation }];
      throw new UsageError('the log line is not of a refusal, or has a reason that this version does not know.');
    }
    case 'response': {
      noteIdle(values, 'a response');
      const explanation = explainResponse(input, at);
      const isText = explanation.verdict === 'undecided';
      return [{ explanation, ...(isText && { text: formatResponse(explanation, input) }) }];
    }
    default:
      return explainCalls(input.kind === 'calls' ? input.calls : [input], { flags, environment, at, policy });
  }
}

/** Reads the input. A URL without input is a request without credentials. */
async function readWrittenInput({ url, file, entry }: Values): Promise<Input> {
  if (entry !== undefined && !/^[1-9]\d{0,5}$/.test(entry)) throw new UsageError('--entry takes a number from 1.');
  const isOptional = url !== undefined && file === undefined;
  const text = isOptional && process.stdin.isTTY ? '' : await readText(file);
  if (isOptional && text.trim() === '') return { kind: 'request', headers: [] };
  return readInput(text, { entry: entry === undefined ? undefined : Number(entry) });
}

interface CallOptions {
  readonly flags: Flags<'explain'>;
  readonly environment: Environment;
  readonly at: number;
  readonly policy: Policy<unknown> | undefined;
}

async function explainCalls(calls: readonly CallInput[], { flags, environment, at, policy }: CallOptions) {
  const { method, url, show, offline, json } = flags.values;
  if (calls.every(({ kind }) => kind !== 'har')) noteIdle(flags.values, 'an input that is not a HAR', ['entry']);
  const [first] = calls as readonly [CallInput, ...CallInput[]]; // an input of calls has at least two
  const explainer = await openExplainer(flags, environment, first);
  try {
    const explained: Explained[] = [];
    for (const { repairs, response, malformed, ...call } of calls) {
      const received = readCall(call, { method, url });
      const options = { kind: call.kind, at, ...(show !== undefined && { show }) };
      const { request } = received;
      const read = await explainer.explain({ ...received, policy, options });
      const explanation = malformed === undefined ? read : explainUnserved(400, request, read, malformed);
      const whole = addResponse({ ...explanation, ...(repairs !== undefined && { repairs }) }, response);
      explained.push({ request, explanation: addNext(whole, offline ? 'offline' : 'online') });
    }
    const [shown] = explained;
    if (shown !== undefined && !json) process.stderr.write(describeComparison(shown.explanation, first));
    for (const problem of new Set(explainer.opened.flatMap((keys) => keys.problem ?? []))) {
      process.stderr.write(`portcullis: no keys. ${problem} To find out why: portcullis doctor\n`);
    }
    return explained;
  } finally {
    explainer.close();
  }
}

/** The rules that the input is compared with, and how a token without a header is read. */
function describeComparison({ against, verdict }: Explanation, { kind }: CallInput): string {
  const { issuer, audiences } = against;
  // Refused before an issuer was chosen.
  if (issuer.length === 0 && verdict !== 'undecided') return '';
  const rules = issuer.length === 0 ? 'nothing' : `${issuer.join(', ')} for ${audiences.join(', ')}`;
  const bearer = kind === 'token' ? '; a token without a header counts as sent with Bearer' : '';
  return `portcullis: compared with ${rules}${bearer}\n`;
}

/** Prints every explanation. The exit status is the status of the first, which is refused if any is. */
function reportAll(explained: readonly Explained[], values: Values, environment: Environment): number {
  const style = readTerminalStyle(environment);
  const sorted = explained.toSorted((a, b) => rankExplanation(a.explanation) - rankExplanation(b.explanation));
  const statuses = sorted.map(({ explanation, request, text }, index) => {
    const status = statusOf(explanation, values.expect);
    const isListed = request !== undefined && sorted.length > 1;
    const path = isListed ? showText(new URL(request.url).pathname, 60) : '';
    const number = `${index === 0 ? '' : '\n'}request ${index + 1} of ${sorted.length}`;
    const title = isListed ? `${number}: ${request.method} ${path}\n` : '';
    process.stdout.write(
      values.json
        ? `${JSON.stringify(explanation)}\n`
        : `${title}${text ?? formatExplanation(explanation, style)}exit ${status}\n`,
    );
    return status;
  });
  return statuses[0] ?? exitCodes.usage;
}

function statusOf({ reason, verdict }: Explanation, expected: string | undefined): number {
  if (expected === undefined) return verdictStatuses[verdict];
  return (reason ?? verdict) === expected ? exitCodes.ok : 1;
}

function readPolicy({ scope = [], permission = [] }: Values): Policy<unknown> | undefined {
  const scopes = scope.flatMap(namesOf);
  const permissions = permission.flatMap(namesOf);
  if (scopes.length === 0 && permissions.length === 0) return undefined;
  return { ...(scopes.length > 0 && { scopes }), ...(permissions.length > 0 && { permissions }) };
}

const maxInput = 64 * 1024 * 1024;

/** Reads a file, or else standard input. */
async function readText(file: string | undefined): Promise<string> {
  if (file === undefined && process.stdin.isTTY) throw new UsageError('there is no input: pipe it in, or add --file.');
  const stream = file === undefined ? process.stdin : createReadStream(file);
  const bytes = await readBytes(stream, { maxBytes: maxInput }).catch(() => {
    throw new UsageError(file === undefined ? 'the input cannot be read.' : 'the file of --file cannot be read.');
  });
  if (bytes === undefined) throw new UsageError('the input has more than 64 MiB.');
  // PowerShell writes files in UTF-16.
  const isWide = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] !== 0 && bytes[1] === 0 && bytes[3] === 0);
  return bytes.toString(isWide ? 'utf16le' : 'utf8');
}
