import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const harness = fileURLToPath(new URL('../../tools/fuzz/main.js', import.meta.url));

it('every input that fuzzing has kept → covered ranges, no finding', () => {
  const output = execFileSync(process.execPath, [harness, '--seconds', '0'], { encoding: 'utf8' });
  const rows = [...output.matchAll(/^\| [\w-]+ \| (\d+) \| \d+ \| (\d+) \|/gm)];
  expect(rows).toHaveLength(6);
  // Without covered ranges the corpus cannot grow: the modules of a target are elsewhere.
  for (const [, kept, ranges] of rows) expect(Math.min(Number(kept), Number(ranges))).toBeGreaterThan(0);
  expect(output).toMatch(/^findings: 0$/m);
});
