// npm run site -- --check: opens pages of the built site in Chromium, and fails on violations of axe, requests to other
// origins, horizontal scrolling, or more than 200 KB of compressed resources. With a folder, writes screenshots into it.
import { readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import axe from 'axe-core';
import { chromium } from 'playwright-core';

const dist = fileURLToPath(new URL('dist', import.meta.url));
const pages = [
  'index',
  'finder',
  'contents',
  'library',
  'gate',
  'gate/rules',
  'frameworks/express',
  'reference/createResourceServer',
  'refusals/invalid_audience',
  'explainer',
];
const widths = [390, 1280];
const schemes = ['light', 'dark'];
const maxKilobytes = 200;
const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
const expiredToken = [
  { alg: 'RS256', kid: 'a', typ: 'at+jwt' },
  { iss: 'https://idp.example/', aud: 'api', exp: 1.7e9, iat: 1.7e9 - 60, sub: 'a' },
];
const expiredRequest = `curl -H 'Authorization: Bearer ${expiredToken.map(part).join('.')}.c2lnbmF0dXJl' https://api.example.com/`;
/** Searches of a new reader, with the guide that the site must find first. */
const searches = {
  'getting started': /\/getting-started/,
  roles: /\/(?:library|providers)/,
  'custom claims': /\/(?:library|providers|gate\/rules)/,
  websocket: /\/(?:recipes|gate\/proxies)/,
  keycloak: /\/providers/,
};
/** Violations inside the search button and the sidebar of VitePress's default theme. */
const ofTheme = new Set(['nested-interactive', 'label-content-name-mismatch']);
const types = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
  '.json': 'application/json',
};

/** Returns what is wrong with the built site. */
export async function checkSite(screenshots) {
  const server = createServer(({ url = '/' }, response) => {
    const file = join(dist, new URL(url, 'http://localhost').pathname);
    if (!file.startsWith(dist) || !isFile(file)) return response.writeHead(404).end();
    const bytes = gzipSync(readFileSync(file));
    return response
      .writeHead(200, {
        'content-type': types[extname(file)] ?? 'text/plain',
        'content-encoding': 'gzip',
        'content-length': bytes.length,
      })
      .end(bytes);
  });
  await /** @type {Promise<void>} */ (new Promise((resolve) => server.listen(0, '127.0.0.1', resolve)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
  const problems = [];
  try {
    for (const name of pages) {
      for (const width of widths) {
        for (const colorScheme of schemes) {
          const found = await checkPage(browser, {
            origin: `http://127.0.0.1:${port}`,
            name,
            width,
            colorScheme,
            screenshots,
          });
          problems.push(...found.map((problem) => `${name}, ${width} px, ${colorScheme}: ${problem}`));
        }
      }
    }
    problems.push(...checkMarkdown(), ...(await checkSearch(browser, `http://127.0.0.1:${port}`)));
  } finally {
    await browser.close();
    server.close();
  }
  return problems;
}

async function checkPage(browser, { origin, name, width, colorScheme, screenshots }) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, bypassCSP: true });
  const page = await context.newPage();
  const problems = [];
  let bytes = 0;
  page.on('request', (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith('data:'))
      problems.push(`requests ${request.url()}`);
  });
  page.on('response', (response) => {
    bytes += Number(response.headers()['content-length'] ?? 0);
  });
  page.on('pageerror', (error) => problems.push(String(error)));
  await page.goto(`${origin}/${name}.html`, { waitUntil: 'load' });
  await page.waitForTimeout(300);
  if (name === 'explainer') {
    await page.fill('textarea', expiredRequest);
    await page.click('button[type=submit]');
    await page.getByText('token_expired').first().waitFor();
    await page.evaluate('scrollTo(0, 0)');
  }
  if (bytes > maxKilobytes * 1024) problems.push(`${Math.round(bytes / 1024)} KB of resources`);
  if (!(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')))
    problems.push('scrolls horizontally');
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate('axe.run(document, { resultTypes: ["violations"] })');
  for (const { id, nodes } of violations.filter((each) => !ofTheme.has(each.id)))
    problems.push(
      `${id}: ${nodes
        .slice(0, 2)
        .map(({ html }) => html.slice(0, 120))
        .join(' ')}`,
    );
  if (screenshots !== undefined)
    await page.screenshot({ path: join(screenshots, `${name.replaceAll('/', '-')}-${width}-${colorScheme}.png`) });
  await context.close();
  return problems;
}

/** Returns the links of llms.txt that have no Markdown, or no page next to it. */
function checkMarkdown() {
  const links = [...readFileSync(join(dist, 'llms.txt'), 'utf8').matchAll(/\]\(([^)]+)\.md\)/g)];
  const missing = links
    .flatMap(([, page]) => ['.md', '.html'].map((end) => page + end))
    .filter((path) => !isFile(join(dist, path)));
  return [
    ...missing.map((path) => `llms.txt: ${path} is missing`),
    ...(links.length < 26 ? ['llms.txt lacks pages'] : []),
  ];
}

/** Returns the searches whose first result is not their guide. */
async function checkSearch(browser, origin) {
  const page = await browser.newPage();
  const problems = [];
  for (const [words, guide] of Object.entries(searches)) {
    await page.goto(`${origin}/index.html`, { waitUntil: 'load' });
    await page.click('#local-search button');
    await page.fill('#localsearch-input', words);
    const first = await page.locator('.results a').first().getAttribute('href');
    if (!guide.test(first ?? '')) problems.push(`search for ${words}: ${first} is first`);
  }
  await page.close();
  return problems;
}

function isFile(path) {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
