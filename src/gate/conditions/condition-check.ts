import { findLikeliest } from '../../core/likeliest-name.ts';
import type { Expr, OpenedCel } from './cel.ts';
import { hasFunction, isTimeZone, timestampType } from './cel-functions.ts';

/** A problem of a condition, with the id of its expression. */
export class ConditionError extends Error {
  readonly id: bigint;

  constructor(message: string, { id }: Pick<Expr, 'id'>) {
    super(message);
    this.id = id;
  }
}

/** Values that a condition reads, from which the cost of its evaluation follows. */
export type ConditionReading = ReturnType<typeof checkCondition>;

/** A path from a variable: `["token", "tenant"]`. */
export type ConditionPath = readonly [variable: string, ...names: string[]];

const requestMembers = ['method', 'host', 'path', 'headers', 'client_ip'];
const variables = ['token', 'path', 'request', 'now'];
const typeNames = new Set(['bool', 'int', 'uint', 'double', 'string', 'bytes', 'list', 'map', 'null_type', 'type']);
const numbers = new Set(['int', 'uint', 'double']);
const macros = ['has', 'exists', 'exists_one', 'all', 'filter', 'map'];
const maxSafe = BigInt(Number.MAX_SAFE_INTEGER);
const maxDepth = 2;
/** Expressions within each other: evaluation is recursive. */
const maxNesting = 100;

/** Operations of a field of a time in a zone with a name. */
const operationsPerZone = 50;

/** A type by the name that CEL gives it, with the type of its items: `dyn`, `list<string>`, `map<dyn>`. */
type Type = string;
const kindOf = (type: Type): string => type.replace(/<.*/, '');
const itemOf = (type: Type): Type => /<(.*)>$/.exec(type)?.[1] ?? 'dyn';
const show = (type: Type): string => kindOf(type).replace('google.protobuf.', '').toLowerCase();
const join = (types: readonly Type[]): Type => (new Set(types).size === 1 ? (types[0] ?? 'dyn') : 'dyn');
/** Reports whether values may have items. */
const isOpen = (type: Type): boolean => /^(?:dyn|list|map)/.test(type);

interface Walk {
  readonly functions: readonly CelFunction[];
  /** Names that path and hosts bind. */
  readonly names: ReadonlySet<string>;
  readonly reads: ConditionPath[];
  /** Steps that are made once, for each item, for each pair of items, … */
  readonly steps: number[];
  /** Arguments of `size`, which reads no item. */
  readonly sized: Set<Expr>;
  /** Comprehensions within each other. */
  depth: number;
  /** Items of the longest list or map in the text. */
  literals: number;
  /** Numbers of additions and of local variables so far. */
  additions: number;
  locals: number;
  scale: number;
}

interface Place {
  readonly scope: ReadonlyMap<string, Type>;
  /** Comprehensions around an expression. */
  readonly level: number;
  readonly nesting: number;
}

/** Checks names, types and nesting, and replaces `has`. Throws {@link ConditionError} for the first problem. */
export function checkCondition(root: Expr, { environment }: OpenedCel, names: ReadonlySet<string>) {
  const walk: Walk = {
    ...{ functions: [...environment.funcs], names, reads: [], steps: [], sized: new Set() },
    ...{ depth: 0, literals: 0, additions: 0, locals: 0, scale: 1 },
  };
  const type = check(root, { scope: new Map(), level: 0, nesting: 0 }, walk);
  return {
    type,
    reads: walk.reads as readonly ConditionPath[],
    depth: walk.depth,
    literals: walk.literals,
    /** Returns the most steps of an evaluation if no list or map has more items. */
    countSteps: (items: number): number =>
      walk.steps.reduce((sum, each, power) => sum + (each ?? 0) * items ** power, 0),
  };
}

function check(expr: Expr, place: Place, walk: Walk): Type {
  if (place.nesting > maxNesting) refuse(expr, `The condition is nested more than ${maxNesting} deep`);
  count(walk, place.level);
  const path = readPath(expr, place);
  if (path !== undefined) return checkRead(expr, path, walk);
  const inside = { ...place, nesting: place.nesting + 1 };
  const { case: kind, value } = expr.exprKind;
  switch (kind) {
    case 'constExpr':
      return checkLiteral(expr, value);
    case 'identExpr':
      if (place.scope.has(value.name)) walk.locals++;
      else if (!typeNames.has(value.name)) refuseName(expr, `variable ${value.name}`, variables);
      return place.scope.get(value.name) ?? 'type';
    case 'selectExpr':
      return checkMember(expr, inside, walk);
    case 'listExpr':
      walk.literals = Math.max(walk.literals, value.elements.length);
      return `list<${join(value.elements.map((each) => check(each, inside, walk)))}>`;
    case 'structExpr':
      if (value.messageName !== '') refuse(expr, `There is no message ${value.messageName}`);
      walk.literals = Math.max(walk.literals, value.entries.length);
      for (const { keyKind } of value.entries) if (keyKind.case === 'mapKey') check(keyKind.value, inside, walk);
      return `map<${join(value.entries.flatMap(({ value: each }) => (each ? [check(each, inside, walk)] : [])))}>`;
    case 'callExpr':
      return checkCall(expr, inside, walk);
    case 'comprehensionExpr':
      return checkComprehension(expr, inside, walk);
    default:
      return refuse(expr, 'The condition is not complete');
  }
}

function checkLiteral(expr: Expr, { constantKind: { case: kind, value } }: Kind<'constExpr'>): Type {
  if ((kind === 'int64Value' || kind === 'uint64Value') && (value > maxSafe || value < -maxSafe)) {
    refuse(expr, `${value} is beyond ±(2^53 − 1). Such a claim is a string: write it in quotation marks`);
  }
  return (kind ?? 'dyn').replace(/(?:64)?Value$/, '').replace(/^null$/, 'null_type');
}

/** Checks a path from a variable. */
function checkRead(expr: Expr, path: ConditionPath, walk: Walk): Type {
  const [variable, member] = path;
  if (path.length > maxNesting) refuse(expr, `The condition is nested more than ${maxNesting} deep`);
  walk.reads.push(path);
  if (variable === 'token') return member === undefined ? 'map<dyn>' : 'dyn';
  if (variable === 'now' && member === undefined) return timestampType;
  if (member === undefined) return refuse(expr, `Write ${variable} with one of its members`);
  if (variable === 'path' && !walk.names.has(member)) {
    refuse(expr, `Neither the path nor each host binds {${member}}. Write {${member}} as one segment or label`);
  }
  if (variable === 'request' && !requestMembers.includes(member)) {
    refuseName(expr, `member request.${member}`, requestMembers);
  }
  const owners =
    variable === 'now' ? [timestampType] : member === 'headers' ? ['', 'map<string>', 'string'] : ['', 'string'];
  const excess = path[owners.length];
  const owner = variable === 'now' ? 'timestamp' : 'string';
  if (excess !== undefined) refuse(expr, `A ${owner} has no member ${excess}`);
  return owners[path.length - 1] ?? 'dyn';
}

function checkMember(expr: Expr, place: Place, walk: Walk): Type {
  const { operand, field, testOnly } = expr.exprKind.value as Kind<'selectExpr'>; // the caller has read the kind
  const path = readPath(operand, place);
  // The caller has read every other path.
  if (path !== undefined) checkRead(expr, [...path, field], walk);
  const owner = path === undefined && operand !== undefined ? check(operand, place, walk) : 'dyn';
  if (owner !== 'dyn' && kindOf(owner) !== 'map') refuse(expr, `A ${show(owner)} has no member ${field}`);
  if (!testOnly || operand === undefined) return itemOf(owner);
  const name = { $typeName: 'cel.expr.Constant', constantKind: { case: 'stringValue', value: field } } as const;
  const argument: Expr = { $typeName: 'cel.expr.Expr', id: expr.id, exprKind: { case: 'constExpr', value: name } };
  const args = [operand, argument];
  expr.exprKind = { case: 'callExpr', value: { $typeName: 'cel.expr.Expr.Call', function: hasFunction, args } };
  return 'bool';
}

function checkCall(expr: Expr, place: Place, walk: Walk): Type {
  const { function: name, target, args: own } = expr.exprKind.value as Kind<'callExpr'>; // the caller has read the kind
  const args = target === undefined ? own : [target, ...own];
  const named = walk.functions.filter((each) => each.name === name);
  if (macros.includes(name)) refuse(expr, `${name} does not take these arguments`);
  if (named.length === 0 && /^\w+$/.test(name)) {
    refuseName(expr, `function ${name}`, [...walk.functions.map((each) => each.name), ...macros]);
  }
  if (name === 'size') for (const arg of args) walk.sized.add(arg);
  const before = walk.locals;
  const types = args.map((arg) => check(arg, place, walk));
  const [left = 'dyn', right = 'dyn', last = 'dyn'] = types;
  const mismatch = (): never =>
    refuse(expr, `${nameOperator(name)} does not take ${types.map(show).join(' and ') || 'nothing'}`);
  switch (name) {
    case '_&&_':
    case '_||_':
    case '@not_strictly_false':
      return types.every((type) => type === 'bool' || type === 'dyn') ? 'bool' : mismatch();
    case '_?_:_':
      return isUnequal(left, 'bool') || isUnequal(right, last) ? mismatch() : join([right, last]);
    case '_==_':
    case '_!=_':
      // Lists and maps are compared item by item.
      if (isOpen(left) && isOpen(right)) count(walk, walk.locals > before ? place.level : place.level + 1);
      return isUnequal(left, right) ? mismatch() : 'bool';
    case '@in':
      if (args[1]?.exprKind.case !== 'listExpr') count(walk, place.level + 1);
      return !isOpen(right) || (kindOf(right) === 'list' && isUnequal(left, itemOf(right))) ? mismatch() : 'bool';
    case '_[_]':
      return !isOpen(left) || (kindOf(left) === 'list' && isUnequal(right, 'int')) ? mismatch() : itemOf(left);
    case 'matches':
      return refuse(expr, 'Regular expressions are not accepted. Write startsWith, endsWith, contains or ==');
    default:
  }
  if (name === '_+_' && isOpen(left)) walk.additions++;
  const found = named.filter((each) => takes(each, types, target !== undefined));
  if (found.length === 0) mismatch();
  const zone = /^get[A-Z]/.test(name) ? own[0]?.exprKind : undefined;
  const text = zone?.case === 'constExpr' ? zone.value.constantKind.value : undefined;
  if (zone !== undefined && (typeof text !== 'string' || !isTimeZone(text))) {
    refuse(expr, `${name} needs a time zone in quotation marks, as in "Europe/Berlin" or "+02:00"`);
  }
  if (/^[A-Z]/i.test(String(text ?? ''))) count(walk, place.level, operationsPerZone);
  return join(found.map(({ result }) => (isOpen(result.name) ? `${result.name}<dyn>` : result.name)));
}

function checkComprehension(expr: Expr, place: Place, walk: Walk): Type {
  const loop = expr.exprKind.value as Kind<'comprehensionExpr'>; // the caller has read the kind
  const { iterRange, accuInit, loopCondition, loopStep, result: last } = loop;
  if (place.level >= maxDepth) refuse(expr, `Comprehensions are nested more than ${maxDepth} deep`);
  walk.depth = Math.max(walk.depth, place.level + 1);
  const { additions, scale } = walk;
  const [range = 'dyn', result = 'dyn'] = [iterRange, accuInit].map((each) => each && check(each, place, walk));
  if (!isOpen(range)) refuse(expr, `A ${show(range)} has no items`);
  const scope = new Map([...place.scope, [loop.accuVar, result]]);
  const item = kindOf(range) === 'list' ? itemOf(range) : 'dyn';
  const inside = { scope: new Map([...scope, [loop.iterVar, item]]), level: place.level + 1, nesting: place.nesting };
  // Each list that is added makes the range longer.
  walk.scale *= 1 + walk.additions - additions;
  for (const each of [loopCondition, loopStep]) if (each !== undefined) check(each, inside, walk);
  walk.scale = scale;
  // The longer a list is that was built item by item, the more steps it takes to read an item.
  if (kindOf(result) === 'list' && !walk.sized.has(expr)) count(walk, place.level + 2);
  return last === undefined ? 'dyn' : check(last, { ...place, scope }, walk);
}

type CelFunction = OpenedCel['environment']['funcs'] extends Iterable<infer F> ? F : never;
type Kind<K> = Extract<Expr['exprKind'], { readonly case: K }>['value'];

function count(walk: Walk, level: number, operations = 1): void {
  walk.steps[level] = (walk.steps[level] ?? 0) + operations * walk.scale;
}

function refuse(expr: Expr, message: string): never {
  throw new ConditionError(message, expr);
}

function refuseName(expr: Expr, what: string, known: readonly string[]): never {
  const written = [...new Set(known)].filter((name) => /^\w+$/.test(name) && name !== 'matches');
  const meant = findLikeliest(what.replace(/^.*[ .]/, ''), written, 2);
  const fix = meant ? `Did you mean ${meant}?` : `Write any of: ${written.join(', ')}`;
  return refuse(expr, `There is no ${what}. ${fix}`);
}

/** Returns the path from a variable to what an expression reads, if the path is constant. */
function readPath(expr: Expr | undefined, place: Place): ConditionPath | undefined {
  if (expr === undefined) return undefined;
  const { case: kind, value } = expr.exprKind;
  if (kind === 'identExpr') {
    return variables.includes(value.name) && !place.scope.has(value.name) ? [value.name] : undefined;
  }
  const select = kind === 'selectExpr' && !value.testOnly ? value : undefined;
  const [operand, index] = kind === 'callExpr' && value.function === '_[_]' ? value.args : [select?.operand];
  const constant = index?.exprKind.case === 'constExpr' ? index.exprKind.value.constantKind : undefined;
  const name = constant?.case === 'stringValue' ? constant.value : select?.field;
  const path = name === undefined ? undefined : readPath(operand, place);
  return path && name !== undefined ? [...path, name] : undefined;
}

function takes({ target, arguments: own }: CelFunction, types: readonly Type[], isMethod: boolean): boolean {
  const parameters = target === undefined ? own : [target, ...own];
  if ((target !== undefined) !== isMethod || parameters.length !== types.length) return false;
  return parameters.every(({ name }, i) => name === 'dyn' || ['dyn', name].includes(kindOf(types[i] ?? '')));
}

/** Reports whether values of two types are never equal. Numbers of all types are compared, and everything with `null`. */
function isUnequal(left: Type, right: Type): boolean {
  const kinds = [kindOf(left), kindOf(right)];
  if (kinds[0] === kinds[1] || kinds.includes('dyn') || kinds.includes('null_type')) return false;
  return !kinds.every((kind) => numbers.has(kind));
}

/** Returns the sign of an operator, or the name of a function. */
function nameOperator(name: string): string {
  return name.startsWith('_') || /^\W_$/.test(name) ? name.replaceAll('_', '') : name.replace('@', '');
}
