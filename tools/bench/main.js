// npm run bench -- [BENCH …] [options]: what is said of speed, measured. `--help` says how.
import { parseArgs } from 'node:util';

const help = `npm run bench -- [BENCH …] [--quick] [--write]

  replay         the replay store in memory: size, time
  http           the service, its peers and floors; wrk sends the load
  rules          what a decision of the gate costs as its rules grow, with a condition and with an exchange
  first          the first token of a new process, with keys that were cached
  cutoffs        memory of revocation cutoffs, and a cached token among them
  gate           the gate next to and as a proxy, with one upstream
  compare REF    this build and another commit's, round by round: the service, then the gate (--only service,gate)
  tables         no measurement: writes the pages from tools/bench/results.json

Without a name: replay, http and rules. With --write and without a name: all that the pages show, in twenty
minutes, and the pages are written (docs/performance.md, docs/evidence/performance-tables.md). With --write and a name: only the part of that bench.

  --quick          fewer servers, workloads and rounds; nothing is written
  --only SERVER,…  --workload NAME,…  --rounds N  --seconds S   parts of http, gate and compare, for development

Every ratio is of processor time a request, from rounds in turn, with a 95 % interval; rounds go on until it is narrower
than ±3 %, or their cap is reached. It needs two idle processors: a measurement in which other programs used the
server's processor is repeated automatically; the report counts those that stayed disturbed.`;

const benches = {
  replay: () => import('./replay.js'),
  http: async () => ({ bench: (await import('./http.js')).benchHttp }),
  rules: () => import('./rules.js'),
  first: () => import('./first.js'),
  cutoffs: () => import('./cutoffs.js'),
  gate: async () => ({ bench: (await import('./http.js')).benchGate }),
  compare: () => import('./compare.js'),
  tables: async () => ({ bench: (await import('./publish.js')).writePages }),
};
/** Default benches. */
const usual = ['replay', 'http', 'rules'];
/** Benches of the pages, in order. */
const written = ['http', 'rules', 'gate'];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    help: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    only: { type: 'string' },
    workload: { type: 'string' },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
  },
});
// `compare` takes a commit.
const [names, refs] =
  positionals[0] === 'compare' ? [positionals.slice(0, 1), positionals.slice(1)] : [positionals, []];
const unknown = names.filter((name) => !Object.hasOwn(benches, name));
if (values.help || unknown.length > 0) {
  (values.help ? console.log : console.error)(
    values.help ? help : `There is no bench ${unknown.join(', ')}.\n\n${help}`,
  );
  process.exit(values.help ? 0 : 64);
}
const list = (text) => text?.split(',').filter(Boolean);
const positive = (text) => (text === undefined ? undefined : Number(text) > 0 ? Number(text) : 1);
const options = {
  quick: values.quick,
  write: values.write,
  only: list(values.only),
  workload: list(values.workload),
  rounds: positive(values.rounds),
  seconds: positive(values.seconds),
  ref: refs[0],
};
for (const name of names.length > 0 ? names : values.write ? written : usual) {
  const { bench } = await benches[name]();
  try {
    // Only what fails fails the run, never a figure.
    if ((await bench(options)) === false) process.exitCode = 1;
  } catch (error) {
    if (!(error instanceof RangeError)) {
      // The others are worth as much without it.
      console.error(`${name} failed:`, error);
      process.exitCode = 1;
      continue;
    }
    console.error(error.message);
    process.exit(64);
  }
}
