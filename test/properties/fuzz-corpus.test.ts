import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const harness = fileURLToPath(new URL('../../tools/fuzz/main.js', import.meta.url));

it('every input that fuzzing has kept → no finding', () => {
  const output = execFileSync(process.execPath, [harness, '--seconds', '0'], { encoding: 'utf8' });
  const kept = [...output.matchAll(/^\| [\w-]+ \| (\d+) \|/gm)].map(([, count]) => Number(count));
  expect(kept).toHaveLength(6);
  for (const count of kept) expect(count).toBeGreaterThan(0);
  expect(output).toMatch(/^findings: 0$/m);
});
