// npm run site [-- --serve | --check]: builds the site into site/dist; then serves it on loopback, or checks it in Chromium.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkSite } from './check.js';
import { bundleExplainer } from './explainer/bundle.js';
import { stagePages } from './stage.js';

const folder = fileURLToPath(new URL('.', import.meta.url));
const dist = join(folder, 'dist');

if (!existsSync(join(folder, 'node_modules'))) {
  // Not `npm ci`: it refuses a lock file in which a registry had no optional packages for other platforms.
  execFileSync('npm', ['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: folder,
    stdio: 'inherit',
  });
}
const { pages, description } = stagePages();
writeFileSync(join(folder, '.stage/pages.json'), JSON.stringify(pages));
const { build, serve } = await import('vitepress');
await build(folder);
await bundleExplainer(dist);
writeMarkdown();
checkAnchors();
console.log(`${pages.length} pages in site/dist`);
if (process.argv.includes('--check')) {
  const problems = await checkSite(process.env.SCREENSHOTS);
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exit(1);
}
if (process.argv.includes('--serve')) await serve({ root: folder, port: Number(process.env.PORT ?? 4173) });

/** Writes the Markdown of each page next to it, and `llms.txt` with a link to each (llmstxt.org). */
function writeMarkdown() {
  for (const { path } of pages) {
    const target = join(dist, path);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, readFileSync(join(folder, '.stage', path)));
  }
  const links = pages.map(({ path, title }) => `- [${title.replaceAll('`', '')}](${path})`);
  writeFileSync(join(dist, 'llms.txt'), `# Portcullis\n\n> ${description}\n\n## Docs\n\n${links.join('\n')}\n`);
}

/** Throws if a link of a built page leads to a page or an anchor that does not exist. */
function checkAnchors() {
  const files = readdirSync(dist, { recursive: true, encoding: 'utf8' }).map((path) => path.replaceAll('\\', '/'));
  const html = new Map(
    files.filter((path) => path.endsWith('.html')).map((path) => [path, readFileSync(join(dist, path), 'utf8')]),
  );
  const dead = [];
  for (const [from, text] of html) {
    for (const [, href] of text.matchAll(/<a [^>]*?href="([^"]*)"/g)) {
      if (/^[a-z]+:/i.test(href)) continue;
      const [path, anchor] = href.split('#');
      const page = path === '' ? from : resolvePage(posix.join(path.startsWith('/') ? '' : posix.dirname(from), path));
      const target = html.get(page);
      if (target === undefined && !files.includes(page)) dead.push(`${from}: ${href}`);
      else if (anchor && target !== undefined && !target.includes(`id="${decodeURIComponent(anchor)}"`))
        dead.push(`${from}: ${href}`);
    }
  }
  if (dead.length > 0) throw new Error(`dead links:\n${[...new Set(dead)].join('\n')}`);
}

function resolvePage(path) {
  const plain = path.replace(/^\//, '');
  if (plain === '' || plain.endsWith('/')) return `${plain}index.html`;
  return /\.\w+$/.test(plain) ? plain : `${plain}.html`;
}
