// node tools/scripts/import-time.js [FOLDER …]: time of `import 'portcullis'` in its own process.
import { timeImport } from '../bench/figures/import.js';
import { compareBuilds, node } from './compare-builds.js';

for (const name of ['portcullis', 'portcullis/express', 'portcullis/testing']) {
  await compareBuilds(name, (folder) => timeImport({ name, folder, node }));
}
