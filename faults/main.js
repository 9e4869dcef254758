// npm run faults [-- --quick] [-- --only NAME]: the service under steady load while something goes wrong; exits with 1
// where a decision was wrong, an accepted request had no answer, a 5xx has no reason, or a bound was broken.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ensureIdentity } from '../dist/local-idp/identity.js';
import { pinned } from './affinity.js';
import { startLoad } from './load.js';
import { openRow, playRow } from './row.js';
import { distinct, idle, slow } from './rows-clients.js';
import { floodRows, keyRows } from './rows-keys.js';
import { processRows } from './rows-process.js';
import { providerRows } from './rows-provider.js';
import { formatHead, formatRow, titleOf } from './table.js';
import { makeKeys } from './tokens.js';
import { undisturbed } from './undisturbed.js';

const hour = 3600;
/** Scenes that are open ahead, so that their services have grown old enough for a forced refresh when it is their turn. */
const ahead = 2;
// Short ones first: one row waits for keys to grow old, and the long ones would keep it.
const rows = [...processRows, idle, ...floodRows, ...providerRows, ...keyRows, slow, distinct];

const { values } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, only: { type: 'string', multiple: true, default: [] } },
});
const unknown = values.only.filter((name) => !rows.some((row) => row.name === name));
if (unknown.length > 0) {
  process.stderr.write(`There is no such row. Rows: ${rows.map(({ name }) => name).join(', ')}.\n`);
  process.exit(64);
}
process.exitCode = await main(rows.filter(({ name }) => values.only.length === 0 || values.only.includes(name)));

async function main(chosen) {
  const startedAt = performance.now();
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-faults-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  // An hour old, so that it is good also while the clock is set back.
  const identity = await ensureIdentity(folder, Math.floor(Date.now() / 1000) - hour);
  const load = startLoad();
  const { quick } = values;
  const keys = await makeKeys(Math.max(1, ...chosen.map((row) => row.countKeys?.(values) ?? 1)));
  const basis = { quick, folder, identity, load, keys };
  const scenes = new Map();
  let failed = 0;
  try {
    const measured = await undisturbed(basis);
    const bench = { ...basis, ...measured };
    process.stdout.write(formatHead({ ...measured, pinned }));
    for await (const [row, scene] of openInTurn(chosen, scenes, bench)) {
      const result = await playRow(row, scene);
      if (result.broken.length > 0) failed++;
      process.stdout.write(formatRow({ ...result, title: titleOf(row, { quick }) }, bench));
    }
  } finally {
    await Promise.all([...scenes.values()].map((scene) => scene.close()));
    await load.end();
  }
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  process.stdout.write(
    `\n${chosen.length} faults in ${seconds} s; ${failed === 0 ? 'nothing was broken' : `${failed} broken`}\n`,
  );
  return failed === 0 ? 0 : 1;
}

/** Each row with its open scene, in an order that lets those ripen whose keys must grow old. */
async function* openInTurn(chosen, scenes, bench) {
  const age = (row) => scenes.get(row)?.service.age() ?? 0;
  const left = [...chosen];
  while (left.length > 0) {
    const ripening = left.filter(({ ripe }) => ripe !== undefined);
    const others = left.filter(({ ripe }) => ripe === undefined);
    const row = ripening.find((each) => age(each) >= each.ripe.from) ?? others[0] ?? ripening[0];
    // One that came too late begins again, in a scene of its own.
    if (row.ripe !== undefined && age(row) > row.ripe.until) {
      await scenes.get(row).close();
      scenes.delete(row);
    }
    for (const each of [row, ...ripening, ...others.slice(0, 1 + ahead).filter(({ fresh }) => fresh !== true)]) {
      if (!scenes.has(each)) scenes.set(each, await openRow(each, bench));
    }
    left.splice(left.indexOf(row), 1);
    const scene = scenes.get(row);
    scenes.delete(row);
    yield [row, scene];
  }
}
