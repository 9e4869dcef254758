// Writes every generated file: tables and copies in the documentation, the reference, the JSON schemas.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';
import { writePart } from '../../shared/page.js';
import { formatPaths, recordPaths } from './request-paths.js';
import { recordSession, page as sessionPage } from './sessions.js';

const { module } = await runnerImport(fileURLToPath(new URL('generated.ts', import.meta.url)), { logLevel: 'error' });
writePart('CONTRIBUTING.md', 'paths', formatPaths(await recordPaths()));
writePart(sessionPage, 'session', await recordSession());

for (const [path, write] of /** @type {any} */ (module).generatedFiles) {
  const text = write();
  if (text === readFileSync(path, 'utf8')) continue;
  writeFileSync(path, text);
  console.log(path);
}
