// node tools/scripts/next-example.js [--write]: the example of Next.js, as its pages have it, on Next.js itself, with the package from
// its tarball. `--write` puts the table into docs/frameworks/next.md. It needs a build and the registry of npm; `npm ci` does
// not install Next.js, for its size. Exits with 1 unless what the pages promise holds.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { createTestIssuer } from 'portcullis/testing';
import { makeFolder } from '../shared/folder.js';
import { findFreePort, holdsWithin } from '../shared/network.js';
import { table, writePart } from '../shared/page.js';
import { endChild, startChild } from '../shared/processes.js';

const packages = ['next@16.4.6', 'react@19.3.1', 'react-dom@19.3.1', 'typescript@5.9.3', '@types/node@20.19.43'];
const swc = `@next/swc-${process.platform}-${process.arch}${process.platform === 'linux' ? '-gnu' : ''}@16.4.6`;
const folder = makeFolder('next');
const audience = 'https://api.example.com/';

const route = readFileSync('examples/next/app/messages/route.ts', 'utf8');
const atRoute = 'app/api/messages/route.ts';
/** Code of the route, and the expected result of the page. */
const variants = [
  { name: 'the route', code: route, works: true },
  { name: "the route with `runtime = 'edge'`", code: `${route}\nexport const runtime = 'edge';\n`, works: false },
];

const run = (command, words, cwd) =>
  execFileSync(command, words, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
const inApplication = { ...process.env, NEXT_TELEMETRY_DISABLED: '1' };

/** Returns the responses to the three requests of a table row. */
async function callServed(application, issuer) {
  const port = await findFreePort();
  const next = [process.execPath, 'node_modules/next/dist/bin/next'];
  const child = startChild([...next, 'start', '-H', '127.0.0.1', '-p', String(port)], {
    cwd: application,
    env: { ...inApplication, ISSUER: issuer.issuer, AUDIENCE: audience, NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem') },
    stdio: 'ignore',
  });
  const url = `http://127.0.0.1:${port}/api/messages`;
  try {
    await holdsWithin(30, async () => (await fetch(url)).status > 0, 100);
    const calls = [{}, issuer.headers(), issuer.headers({ scope: 'read:messages', sub: 'alice' })];
    const answers = [];
    for (const headers of calls) {
      const response = await fetch(url, { headers });
      const text = await response.text();
      answers.push(text === '{"reader":"alice"}' ? `${response.status}, \`${text}\`` : `${response.status}`);
    }
    return answers;
  } finally {
    await endChild(child);
  }
}

async function measure({ code }, index, issuer) {
  const application = join(folder, `variant-${index}`);
  cpSync(join(folder, 'base'), application, { recursive: true, verbatimSymlinks: true });
  mkdirSync(dirname(join(application, atRoute)), { recursive: true });
  writeFileSync(join(application, atRoute), code);
  try {
    execFileSync(process.execPath, ['node_modules/next/dist/bin/next', 'build'], {
      cwd: application,
      env: inApplication,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  } catch ({ stderr, stdout }) {
    const [, cause = 'fails'] = /TypeError: (.*)/.exec(`${stderr}${stdout}`) ?? [];
    return [`fails: ${cause.trim()}`, '–', '–', '–'];
  }
  return ['builds', ...(await callServed(application, issuer))];
}

const issuer = await createTestIssuer({ audience }).listen();
try {
  const [{ filename }] = JSON.parse(run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder]));
  const base = join(folder, 'base');
  mkdirSync(base);
  writeFileSync(join(base, 'package.json'), '{"private":true}');
  const tarball = resolve(folder, filename);
  run('npm', ['install', '--no-audit', '--no-fund', '--omit=optional', ...packages, swc, tarball], base);
  writeFileSync(join(folder, 'ca.pem'), issuer.ca);
  const rows = [];
  for (const [index, variant] of variants.entries()) rows.push([variant, await measure(variant, index, issuer)]);
  const output = table(
    ['Next.js 16.4.6', '`next build`', 'no token', 'without the scope', 'with the scope'],
    rows.map(([{ name }, cells]) => [name, ...cells]),
  );
  console.log(output);
  if (process.argv.includes('--write')) writePart('docs/frameworks/next.md', 'output: next', output);
  const good = 'builds, 401, 403, 200, `{"reader":"alice"}`';
  const broken = rows.filter(([{ works }, cells]) => (cells.join(', ') === good) !== works);
  for (const [{ name }] of broken) console.error(`not as the page says: ${name}`);
  process.exitCode = broken.length === 0 ? 0 : 1;
} finally {
  await issuer.close();
}
