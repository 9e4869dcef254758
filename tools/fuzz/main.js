// Coverage-guided fuzzing of what reads hostile text: node tools/fuzz/main.js [--seconds N] [--target NAME] [--seed N] [--keep]
// N seconds in all, shared by the targets; 0 replays the kept corpus alone. --keep writes what the corpus has become.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { table } from '../shared/page.js';
import { createRandom } from '../shared/random.js';
import { openCoverage } from './coverage.js';
import { fuzzTarget } from './engine.js';
import { targets } from './targets.js';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    target: { type: 'string' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    keep: { type: 'boolean', default: false },
  },
});
const names = values.target === undefined ? Object.keys(targets) : [values.target];
if (!names.every((name) => Object.hasOwn(targets, name)))
  throw new Error(`target: any of ${Object.keys(targets).join(', ')}`);
const seconds = Number(values.seconds);
const seed = Number(values.seed);
if (!(seconds >= 0) || !Number.isInteger(seed)) throw new Error('seconds: a number, 0 or more; seed: an integer');

const print = (text) => process.stdout.write(`${text}\n`);
const file = (name) => new URL(`./corpus/${name}.json`, import.meta.url);
const readCorpus = (name) => (existsSync(file(name)) ? JSON.parse(readFileSync(file(name), 'utf8')) : []);

print(`seed ${seed}, ${seconds} s`);
print(table(['target', 'kept before', 'runs', 'ranges', 'kept now', 'findings'], []));
let found = 0;
for (const name of names) {
  const target = targets[name];
  const coverage = openCoverage(target.modules);
  const corpus = readCorpus(name);
  const result = fuzzTarget(target, {
    corpus,
    coverage,
    random: createRandom(seed).below,
    milliseconds: (seconds * 1000) / names.length,
  });
  coverage.close();
  const { runs, blocks, findings } = result;
  print(`| ${name} | ${corpus.length} | ${runs} | ${blocks} | ${result.corpus.length} | ${findings.length} |`);
  for (const { kind, input, message = '' } of findings) {
    print(`finding: ${kind}\ninput: ${JSON.stringify(input)}\n${message}`);
  }
  found += findings.length;
  if (values.keep) writeFileSync(file(name), `${JSON.stringify(result.corpus, undefined, 2)}\n`);
}
print(`findings: ${found}`);
process.exitCode = found === 0 ? 0 : 1;
