// npm run bench -- fleet: what 1000 instances do to their provider, on a simulated clock (tools/scripts/simulate-fleet.js).
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { formatFleet } from './fleet-report.js';
import { savePart } from './publish.js';

const instances = 1000;
const script = fileURLToPath(new URL('../scripts/simulate-fleet.js', import.meta.url));

/** Prints the table; kept with `write`. */
export async function bench({ quick, write }) {
  const count = quick ? 50 : instances;
  const words = [script, '--instances', String(count), '--json'];
  const outcomes = JSON.parse(execFileSync(process.execPath, words, { encoding: 'utf8' }));
  const part = { date: new Date().toISOString(), instances: count, outcomes };
  console.log(`\n${formatFleet(part)}\n`);
  if (write && !quick) savePart('fleet', part);
}
