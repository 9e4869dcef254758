// Compares packages that evaluate CEL: the conformance cases of cel-spec, random expressions, hostile values, time and size. Needs npm
// and a build. `--write` writes docs/evidence/cel.md.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { installPackages } from '../bench/install.js';

const folder = fileURLToPath(new URL('.', import.meta.url));
installPackages(folder);
// As URLs: the packages exist only after the installation.
const { candidates, readBound, showExpected } = await import(new URL('candidates.js', import.meta.url).href);
const { getConformanceSuite } = await import('@bufbuild/cel-spec/testdata/tests.js');

const names = Object.keys(candidates);
const rows = [];
const add = (what, read) => rows.push([what, ...names.map((name) => read(candidates[name], name))]);
const attempt = (read) => {
  try {
    return read();
  } catch {
    return 'error';
  }
};

const listCases = ({ name, suites, tests }, file) => [
  ...tests.map(({ original }) => ({ file: file ?? name, ...original })),
  ...suites.flatMap((suite) => listCases(suite, file ?? suite.name)),
];
const cases = listCases(getConformanceSuite());
/** Files and expressions about messages, enums and extensions, which JSON does not have. */
const otherFiles = /_ext$|^(?:proto|enums|wrappers|optionals|fields|namespace|type_deductions|dynamic|macros2)/;
const otherText = /TestAllTypes|google\.protobuf|optional|\.\?|\[\?|cel\.|math\.|net\./;
const isOfJson = ({ file, expr, container }) => !otherFiles.test(file) && !otherText.test(expr) && container === '';

function passes(candidate, { expr, container, bindings, typeEnv, checkOnly, resultMatcher: { case: kind, value } }) {
  const outcome = attempt(() => {
    const values = Object.fromEntries(
      Object.entries(bindings).map(([name, bound]) => [name, readBound(bound.kind.value, candidate)]),
    );
    const declared = typeEnv.flatMap(({ declKind, name }) => (declKind.case === 'ident' ? [name] : []));
    const run = candidate.compile(expr, { container, names: new Set([...Object.keys(values), ...declared]) });
    return checkOnly ? 'checked' : run(values);
  });
  if (kind === 'evalError') return outcome === 'error';
  if (kind === 'typedResult') return outcome === (value.result ? showExpected(value.result) : 'checked');
  return outcome === (kind === 'value' ? showExpected(value) : 'boolean true');
}
const countPassed = (some) => (candidate) =>
  `${some.filter((each) => passes(candidate, each)).length} of ${some.length}`;
add('cases of cel-spec', countPassed(cases));
add('of these, about values that JSON has', countPassed(cases.filter(isOfJson)));

// A linear congruential generator, so that each run has the same expressions.
let seed = 1;
const pick = (items) => {
  seed = (seed * 48_271) % 2_147_483_647;
  return items[seed % items.length];
};
const atoms = [
  '1',
  '-3',
  '2.5',
  '"a"',
  'true',
  'null',
  't.n',
  't.s',
  't.l',
  't.m',
  't.x',
  '[1, 2]',
  '{"a": 1}',
  't.l[0]',
];
const operators = ['==', '!=', '<', '>=', '+', '-', '*', '/', '%', '&&', '||', 'in'];
const write = (depth) => {
  if (depth === 0) return pick(atoms);
  const form = pick([0, 0, 0, 1, 2, 3, 4]);
  if (form === 1) return `(${write(depth - 1)} ? ${write(depth - 1)} : ${write(depth - 1)})`;
  if (form === 2) return `size(${write(depth - 1)})`;
  if (form === 3) return `t.l.exists(x, ${write(depth - 1)} == x)`;
  return form === 4 ? `dyn(${write(depth - 1)})` : `(${write(depth - 1)} ${pick(operators)} ${write(depth - 1)})`;
};
const values = { t: new Map(Object.entries({ n: 3n, s: 'a', l: [1n, 'a', null], m: new Map([['a', 1n]]) })) };
const texts = Array.from({ length: 5000 }, () => write(3));
const evaluate = (candidate, text) => attempt(() => candidate.compile(text, { names: ['t'] })(values));
const reference = texts.map((text) => evaluate(candidates[names[1]], text));
const compared = (candidate, isKind) =>
  texts.filter((text, i) => isKind(evaluate(candidate, text), reference[i])).length;
add('5,000 random expressions: another value than @bufbuild/cel', (each) =>
  compared(each, (one, other) => one !== other && one !== 'error' && other !== 'error'),
);
add('a type error for a value', (each) => compared(each, (one, other) => one === 'error' && other !== 'error'));
add('a value for an error', (each) => compared(each, (one, other) => one !== 'error' && other === 'error'));

const parse = (json) => {
  const toMap = (value) =>
    Array.isArray(value)
      ? value.map(toMap)
      : typeof value === 'object' && value !== null
        ? new Map(Object.entries(value).map(([name, each]) => [name, toMap(each)]))
        : Number.isSafeInteger(value)
          ? BigInt(value)
          : value;
  return toMap(JSON.parse(json));
};
const hostile = [
  ['t == {"x": "y"}', '{"__proto__": {}}', 'boolean false'],
  ['"a" in t && has(t.a)', '{"a": null}', 'boolean true'],
  ['has(t.constructor) || "toString" in t', '{}', 'boolean false'],
  ['t.constructor == "x"', '{"constructor": "x"}', 'boolean true'],
  ['timestamp(t.n) == timestamp("2001-09-09T01:46:40Z")', '{"n": 1000000000}', 'boolean true'],
  ['timestamp(t.s) > timestamp(0)', '{"s": "Sep 9 2001 00:00:00"}', 'error'],
  ['int(t.s) == 0', '{"s": ""}', 'error'],
  ['!(double(t.s) > 1.0)', '{"s": "x"}', 'error'],
  ['timestamp("2027-03-28T02:30:00Z").getHours() == 2', '{}', 'boolean true'],
  ['t.n == 9007199254740993', '{"n": "9007199254740993"}', 'boolean false'],
];
process.env.TZ = 'Europe/Berlin'; // a host in another zone, in the hour that its summer time skips
for (const [text, json, right] of hostile) {
  add(`\`${text}\` with \`${json}\`: ${right.replace('boolean ', '')}`, (candidate) => {
    const outcome = attempt(() => candidate.compile(text, { names: ['t'] })({ t: parse(json) }));
    return outcome === right ? 'right' : `**${outcome.replace('boolean ', '')}**`;
  });
}

function measure(candidate, text, json, rounds = 1) {
  const run = attempt(() => candidate.compile(text, { names: ['t'] }));
  if (run === 'error') return 'not accepted';
  const bound = { t: parse(json) };
  let total = 0;
  for (const last of [false, true]) {
    const start = performance.now();
    for (let i = 0; i < rounds; i++) attempt(() => run(bound));
    if (last || rounds === 1) total = (performance.now() - start) / rounds;
    if (rounds === 1) break;
  }
  return total < 0.1 ? `${(total * 1000).toFixed(1)} µs` : `${total.toFixed(total < 10 ? 1 : 0)} ms`;
}
const four = 't.a == "x" && "otp" in t.amr && t.level >= 3 && t.b != "y"';
add('four clauses', (each) => measure(each, four, '{"a": "x", "amr": ["pwd", "otp"], "level": 3, "b": "x"}', 20_000));
add('a missing claim, which is an error', (each) => measure(each, 't.x == 1 || t.a == 1', '{"a": 1}', 20_000));
const list = JSON.stringify({ l: Array.from({ length: 10_000 }, (_, i) => i) });
add('`exists` over 10,000 items', (each) => measure(each, 't.l.exists(x, x == -1)', list, 5));
add('`duration` of 2,000 digits', (each) =>
  measure(each, 'duration(t.d) > duration("1s")', JSON.stringify({ d: '9'.repeat(2000) })),
);
const deep = (open, close, count) => `${open.repeat(count)}1${close.repeat(count)}`;
add('100 lists within each other', (each) => attempt(() => each.compile(`${deep('[', ']', 100)} == 1`) && 'parsed'));
add('2,000 lists within each other', (each) => attempt(() => each.compile(`${deep('[', ']', 2000)} == 1`) && 'parsed'));

const sizes = { js: ['@marcbachmann'], buf: ['@bufbuild'] };
const size = (packages) => {
  const paths = packages.map((name) => `${folder}node_modules/${name}`);
  const kilobytes = execFileSync('du', ['-sk', ...paths], { encoding: 'utf8' })
    .split('\n')
    .map(Number.parseFloat);
  return `${(kilobytes.filter(Boolean).reduce((sum, each) => sum + each, 0) / 1024).toFixed(1)} MiB`;
};
add('installed, with dependencies', (_, name) => size(name.includes('marcbachmann') ? sizes.js : sizes.buf));

const table = [['', ...names], names.map(() => '---').concat('---'), ...rows]
  .map((row) => `| ${row.join(' | ')} |`)
  .join('\n');
console.log(table);
if (process.argv.includes('--write')) {
  const path = 'docs/evidence/cel.md';
  const page = readFileSync(path, 'utf8');
  writeFileSync(
    path,
    page.replace(/(<!-- table -->\n)[\s\S]*(<!-- end -->)/, (_, start, end) => `${start}${table}\n${end}`),
  );
}
