// Writes every generated file: tables and copies in the documentation, the reference, the JSON schemas.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';
import { formatPaths, pathsPlace, recordPaths } from './request-paths.js';
import { recordSession, page as sessionPage, sessionPlace } from './sessions.js';

const { module } = await runnerImport(fileURLToPath(new URL('generated.ts', import.meta.url)), { logLevel: 'error' });
const lists = formatPaths(await recordPaths());
replace('CONTRIBUTING.md', pathsPlace, `<!-- paths -->\n${lists}<!-- end -->`);
replace(sessionPage, sessionPlace, `<!-- session -->\n${await recordSession()}<!-- end -->`);

/** Replaces a part of a page. */
function replace(page, place, text) {
  writeFileSync(
    page,
    readFileSync(page, 'utf8').replace(place, () => text),
  );
}

for (const [path, write] of /** @type {any} */ (module).generatedFiles) {
  const text = write();
  if (text === readFileSync(path, 'utf8')) continue;
  writeFileSync(path, text);
  console.log(path);
}
