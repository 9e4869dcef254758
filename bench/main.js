// npm run bench -- [verify|replay] [--quick]: prints ratios of medians within one run; absolute figures are context.
import { parseArgs } from 'node:util';

const benches = { verify: () => import('./verify.js'), replay: () => import('./replay.js') };

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: 'boolean', default: false } },
});
const unknown = positionals.filter((name) => !Object.hasOwn(benches, name));
if (unknown.length > 0) {
  console.error(`There is no such bench. Benches: ${Object.keys(benches).join(', ')}.`);
  process.exit(64);
}
for (const name of positionals.length > 0 ? positionals : Object.keys(benches)) {
  const { bench } = await benches[name]();
  await bench({ quick: values.quick });
}
