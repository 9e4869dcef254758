// npm run import-time [-- FOLDER …]: how long `import 'portcullis'` takes in a process of its own.
import { execFileSync } from 'node:child_process';
import { compareBuilds, node } from './compare-builds.js';

const program = `
  const start = performance.now();
  await import(process.argv[1]);
  console.log(performance.now() - start);
`;

for (const name of ['portcullis', 'portcullis/express', 'portcullis/testing']) {
  await compareBuilds(name, (folder) =>
    // The package of the folder finds itself by its name.
    Number(execFileSync(node, ['--input-type=module', '--eval', program, name], { cwd: folder, encoding: 'utf8' })),
  );
}
