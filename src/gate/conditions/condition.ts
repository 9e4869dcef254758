import { createCheck } from '../../core/checks.ts';
import type { JsonObject } from '../../core/jose/json.ts';
import type { Comparison } from '../../core/refused.ts';
import { findClaim } from '../../core/token/grants.ts';
import type { PolicyFacts } from '../../core/token/token-policy.ts';
import { ConditionCall } from '../match/condition-call.ts';
import { type Expr, openCel } from './cel.ts';
import { type Cel, writeTimestamp } from './cel-functions.ts';
import { ConditionError, type ConditionPath, type ConditionReading, checkCondition } from './condition-check.ts';
import { addSizes, type ConditionSize, findAlias, measure, readHeaders, writeClaims } from './condition-values.ts';

const maxBytes = 4096;
/** Steps of comprehensions within each other. */
const maxSteps = 10_000;
/** Operations of one evaluation, each for a number of characters of the longest string. */
const maxOperations = 250_000;
const charactersPerOperation = 64;
/** Values that a refusal shows. */
const maxShown = 10;

interface ConditionOptions {
  /** Names that the path and the hosts of the rule bind. */
  readonly names: ReadonlySet<string>;
  /** Names of the headers that the gate sets: one list for all rules. */
  readonly headers: readonly string[];
}

/** An operand of `&&` at the top, or the entire condition. */
interface Operand extends ConditionReading {
  readonly text: string;
  readonly run: Run;
  /** For a comparison of a claim with what is not a claim. */
  readonly wanted?: { readonly claim: string; readonly isList: boolean; readonly run: Run } | undefined;
}

type Run = ReturnType<Cel['plan']>;
type Variables = NonNullable<Parameters<Run>[0]>;
/** The size of the claims that are read, and the outcome if only they decide. */
type ReadToken = ConditionSize & { outcome?: boolean };

/** Compiles a condition. Throws `TypeError`, with the position in the text, for one that cannot work. */
export function compileCondition(text: string, { names, headers }: ConditionOptions) {
  const { operands, run } = parseCondition(text, names);
  const reads = [...new Map(operands.flatMap((each) => each.reads).map((path) => [showPath(path), path])).values()];
  const members = new Set(reads.flatMap(([variable, member = '']) => (variable === 'request' ? [member] : [])));
  const words = new Set(members.has('headers') ? text.toLowerCase().match(/[\w-]+/g) : []);
  const aliasOf = ({ conditionCall }: PolicyFacts): string | undefined =>
    words.size > 0 && conditionCall instanceof ConditionCall ? findAlias(conditionCall.request, words) : undefined;
  const readsRequest = reads.some(([variable]) => variable !== 'token');
  const depth = Math.max(...operands.map((each) => each.depth));
  const literals = Math.max(...operands.map((each) => each.literals));
  const countOperations = (items: number): number => operands.reduce((sum, each) => sum + each.countSteps(items), 0);
  const isLinear = countOperations(1) === countOperations(2);
  const tokens = new WeakMap<object, ReadToken>();

  const readToken = ({ token: { claims } }: PolicyFacts): ReadToken => {
    const known = tokens.get(claims);
    if (known !== undefined) return known;
    const paths = isLinear ? [] : reads.filter(([variable]) => variable === 'token');
    const sizes = paths.map(([, ...path]) => measure(findClaim(claims, path)));
    const read = addSizes({ items: literals, length: 0 }, ...sizes);
    tokens.set(claims, read);
    return read;
  };
  const writeVariables = ({ token, now, jwt = '', conditionCall }: PolicyFacts) => {
    const call = conditionCall instanceof ConditionCall ? conditionCall : undefined;
    const lines = call && members.has('headers') ? readHeaders(call.request, headers) : new Map<string, string>();
    const request = new Map<string, Variables[string]>([['headers', lines]]);
    for (const member of members) if (member !== 'headers') setPresent(request, member, call?.read(member));
    const path = new Map<string, string>();
    // An empty value equals nothing.
    for (const [name, value] of call?.bound ?? []) setPresent(path, name, value || undefined);
    return { token: writeClaims(token.claims, jwt), path, request, now: writeTimestamp(BigInt(Math.floor(now))) };
  };
  /** Returns the size that makes an evaluation too long. */
  const findExcess = (token: ConditionSize, { request, path }: Variables): ConditionSize | undefined => {
    if (isLinear) return undefined;
    const values = [request, path].map((each) => (each instanceof Map ? [...each.values()] : []));
    const size = addSizes(token, measure(values));
    const operations = countOperations(size.items) * Math.ceil((size.length || 1) / charactersPerOperation);
    return size.items ** depth > maxSteps || operations > maxOperations ? size : undefined;
  };

  const passes = (facts: PolicyFacts): boolean => {
    const token = readToken(facts);
    if (token.outcome !== undefined) return token.outcome;
    const variables = writeVariables(facts);
    const isReadable = aliasOf(facts) === undefined && findExcess(token, variables) === undefined;
    const outcome = isReadable && isTrue(run, variables);
    if (!readsRequest) token.outcome = outcome;
    return outcome;
  };
  const compare = (facts: PolicyFacts): Comparison => {
    const alias = aliasOf(facts);
    if (alias !== undefined) return { expected: 'one spelling of each header', received: alias };
    const variables = writeVariables(facts);
    const excess = findExcess(readToken(facts), variables);
    if (excess !== undefined) {
      const { items, length } = excess;
      return { expected: 'shorter lists and strings', received: `${items} items, ${length} characters` };
    }
    const failed = operands.find((each) => !isTrue(each.run, variables));
    const values = (failed?.reads ?? []).slice(0, maxShown).map((path) => {
      const value = path[0] === 'token' ? findClaim(facts.token.claims, path.slice(1)) : readValue(variables, path);
      return { name: showPath(path), value, isSecret: path[1] === 'headers' && path[0] === 'request' };
    });
    return { expected: failed?.text, values, wanted: failed?.wanted && findWanted(failed.wanted, variables) };
  };
  /** `readsRequest` is true if the condition reads more than the token. */
  return { check: createCheck('condition', passes, { compare }), readsRequest };
}

function setPresent<V>(map: Map<string, V>, name: string, value: V | undefined): void {
  if (value !== undefined) map.set(name, value);
}

/** Parses and checks a condition. */
function parseCondition(text: string, names: ReadonlySet<string>) {
  if (Buffer.byteLength(text) > maxBytes) throw new TypeError(`The condition has more than ${maxBytes} bytes`);
  const opened = openCel();
  const { cel, environment } = opened;
  const parsed = attempt(
    () => cel.parse(text),
    (error) => describeSyntax(error, text),
  );
  const { expr, sourceInfo } = parsed;
  const place = ({ message, id }: ConditionError): string =>
    message + showPosition(text, sourceInfo?.positions[String(id)] ?? 0);
  const operands = listOperands(expr).map((each): Operand => {
    const operand = cel.unparse({ ...parsed, expr: each });
    const reading = attempt(
      () => checkCondition(each, opened, names),
      (error) => (error instanceof ConditionError ? place(error) : undefined),
    );
    if (reading.type !== 'bool' && reading.type !== 'dyn') {
      throw new TypeError(place(new ConditionError(`The type is ${reading.type}, and a condition is a bool`, each)));
    }
    const plan = (part: Expr): Run => cel.plan(environment, part);
    const wanted = readWanted(each, (part) => checkCondition(part, opened, names).reads);
    return { ...reading, text: operand, run: plan(each), wanted: wanted && { ...wanted, run: plan(wanted.other) } };
  });
  return { operands, run: cel.plan(environment, expr) };
}

/** Runs a step. Throws `TypeError` with the description of its error. */
function attempt<T>(run: () => T, describe: (error: unknown) => string | undefined): T {
  try {
    return run();
  } catch (cause) {
    const message = describe(cause);
    throw message === undefined ? cause : new TypeError(message, { cause });
  }
}

function listOperands(expr: Expr): readonly Expr[] {
  const { case: kind, value } = expr.exprKind;
  return kind === 'callExpr' && value.function === '_&&_' ? value.args.flatMap(listOperands) : [expr];
}

/** Reads the claim of `token.a == other`, or of `other in token.a`, if `other` reads no claim. */
function readWanted({ exprKind: { case: kind, value } }: Expr, read: (expr: Expr) => readonly ConditionPath[]) {
  const isList = kind === 'callExpr' && value.function === '@in';
  if (kind !== 'callExpr' || (value.function !== '_==_' && !isList)) return undefined;
  for (const [other, side] of [value.args, value.args.toReversed()]) {
    const [path, ...more] = side?.exprKind.case === 'callExpr' || side === undefined ? [] : read(side);
    const isClaim = path?.[0] === 'token' && path.length === 2 && more.length === 0;
    if (!isClaim || other === undefined || read(other).some(([variable]) => variable === 'token')) continue;
    return side === value.args[1] || !isList ? { claim: path[1] ?? '', isList, other } : undefined;
  }
  return undefined;
}

/** Returns the claim with which an operand is true, if its value is a scalar. */
function findWanted(
  { claim, isList, run }: NonNullable<Operand['wanted']>,
  variables: Variables,
): JsonObject | undefined {
  const value = run(variables);
  const isScalar = typeof value === 'bigint' || typeof value === 'string' || typeof value === 'boolean';
  const written = typeof value === 'bigint' ? Number(value) : value;
  return isScalar ? { [claim]: isList ? [written] : written } : undefined;
}

/** Describes an error of the parser, which has the place where it stopped. */
function describeSyntax(error: unknown, text: string): string {
  const { location } = Object(error) as { readonly location?: { readonly start: { readonly offset: number } } };
  const offset = location?.start.offset ?? 0;
  const [next] = /^\S{0,20}/.exec(text.slice(offset)) ?? [];
  return `The condition is not valid CEL: ${next ? `${JSON.stringify(next)} is not expected` : 'it is not complete'}${showPosition(text, offset)}`;
}

function showPosition(text: string, offset: number): string {
  const lines = text.slice(0, offset).split('\n');
  const line = lines.length === 1 ? '' : `line ${lines.length}, `;
  return ` (${line}character ${(lines.at(-1)?.length ?? 0) + 1} of the condition)`;
}

/** Evaluates without traces: an error is a result, and a trace of it would take most of the time. */
function isTrue(run: Run, variables: Variables): boolean {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return run(variables) === true;
  } finally {
    Error.stackTraceLimit = limit;
  }
}

/** Writes a path as a condition has it. */
function showPath([variable, ...names]: ConditionPath): string {
  const rest = names.map((name) => (/^[A-Za-z_]\w*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`));
  return variable + rest.join('');
}

function readValue(variables: Variables, [variable, ...names]: ConditionPath): unknown {
  const seconds: unknown = Object(variables[variable])['seconds'];
  if (variable === 'now') return new Date(Number(seconds) * 1000).toISOString();
  let value: unknown = variables[variable];
  for (const name of names) value = value instanceof Map ? value.get(name) : undefined;
  return value instanceof Map ? `${value.size} headers` : value;
}
