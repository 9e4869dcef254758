// How long `import 'portcullis'` takes in a process of its own; milliseconds.
import { execFileSync } from 'node:child_process';

const runs = 21;
const program = `
  const start = performance.now();
  await import(process.argv[1]);
  console.log(performance.now() - start);
`;

for (const name of ['portcullis', 'portcullis/express', 'portcullis/testing']) {
  const times = Array.from({ length: runs }, () =>
    Number(execFileSync(process.execPath, ['--input-type=module', '--eval', program, name], { encoding: 'utf8' })),
  ).toSorted((a, b) => a - b);
  const [fastest, median] = [times[0], times[(runs - 1) / 2]];
  console.log(
    `${name}: median ${median.toFixed(1)} ms, fastest ${fastest.toFixed(1)} ms of ${runs} (Node ${process.version})`,
  );
}
