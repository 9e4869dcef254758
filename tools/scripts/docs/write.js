// Writes every generated file: tables and copies in the documentation, the reference, the JSON schemas.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';
import { formatPaths, pathsPlace, recordPaths } from './request-paths.js';

const { module } = await runnerImport(fileURLToPath(new URL('generated.ts', import.meta.url)), { logLevel: 'error' });
const page = 'CONTRIBUTING.md';
const lists = formatPaths(await recordPaths());
writeFileSync(
  page,
  readFileSync(page, 'utf8').replace(pathsPlace, () => `<!-- paths -->\n${lists}<!-- end -->`),
);

for (const [path, write] of /** @type {any} */ (module).generatedFiles) {
  const text = write();
  if (text === readFileSync(path, 'utf8')) continue;
  writeFileSync(path, text);
  console.log(path);
}
