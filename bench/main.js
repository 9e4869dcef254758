// npm run bench -- [verify|replay|http|profile|rules|proxy] [--quick]: prints ratios of medians within one run; absolute figures are context.
import { parseArgs } from 'node:util';

const benches = {
  verify: () => import('./verify.js'),
  replay: () => import('./replay.js'),
  http: () => import('./http.js'),
  profile: () => import('./profile.js'),
  rules: () => import('./rules.js'),
  proxy: () => import('./proxy.js'),
};
/** What runs where none is named. */
const usual = ['verify', 'replay', 'http', 'rules'];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    // Of profile alone: puts its table into the documentation.
    write: { type: 'boolean', default: false },
    // Of http and profile, for their development: parts of the tables, and how long.
    only: { type: 'string' },
    workload: { type: 'string' },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
  },
});
const unknown = positionals.filter((name) => !Object.hasOwn(benches, name));
if (unknown.length > 0) {
  console.error(`There is no such bench. Benches: ${Object.keys(benches).join(', ')}.`);
  process.exit(64);
}
const list = (text) => text?.split(',').filter(Boolean);
const whole = (text) => (text === undefined ? undefined : Math.max(1, Math.trunc(Number(text)) || 1));
const options = {
  quick: values.quick,
  write: values.write,
  only: list(values.only),
  workload: list(values.workload),
  rounds: whole(values.rounds),
  seconds: whole(values.seconds),
};
for (const name of positionals.length > 0 ? positionals : usual) {
  const { bench } = await benches[name]();
  try {
    // Only what fails fails the run, never a figure.
    if ((await bench(options)) === false) process.exitCode = 1;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    console.error(error.message);
    process.exit(64);
  }
}
