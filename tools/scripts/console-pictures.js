#!/usr/bin/env node
// Takes the pictures of the console in docs/images, one for the site: node tools/scripts/console-pictures.js
// It needs a build, and Chromium (`CHROMIUM`, default /usr/bin/chromium). For the package, 256 colours are a third of the bytes:
// pngquant --ext .png --force 256 docs/images/console-*.png
import { execFileSync, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { makeFolder } from '../shared/folder.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const folder = makeFolder('pictures');
const environment = { PATH: process.env.PATH, XDG_CACHE_HOME: folder, HOME: folder, NO_COLOR: '1' };
const main = join(root, 'dist/cli/main.js');
const dev = spawn(process.execPath, [main, 'dev', '--port', '0', '--idp-port', '0'], {
  env: environment,
  stdio: ['ignore', 'pipe', 'inherit'],
});
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'],
});
try {
  let output = '';
  for await (const chunk of dev.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    output += chunk;
    if (/\?key=.*\n/.test(output)) break;
  }
  const [, service = ''] = /^Service +(\S+)/m.exec(output) ?? [];
  const [, keyFile = '', link = ''] = /^ {2}console key +(\S+)[\s\S]*"(\S+)\?key=/m.exec(output) ?? [];
  const page = await browser.newPage({ viewport: { width: 1080, height: 660 }, colorScheme: 'light' });
  await page.goto(`${link}?key=${(await readFile(keyFile, 'utf8')).trim()}`);
  await page.waitForURL('**/console');

  const picture = (name) => page.screenshot({ path: join(root, 'docs/images', `${name}.png`) });
  const attempt = async (kind) => {
    await page.getByRole('link', { name: 'Try it', exact: true }).click();
    await page.getByLabel('Endpoint').selectOption('/api/private-scoped');
    await page.getByRole('radio', { name: kind }).first().check();
    await page.getByRole('button', { name: 'Send request' }).click();
    await page.getByRole('heading', { name: /^Status/ }).waitFor();
    await page.locator('.tried .checks').last().waitFor();
  };
  for (const kind of ['No token', 'Valid token', 'Expired', 'DPoP, replayed', 'Wrong issuer', 'Missing scope']) {
    await attempt(kind);
  }
  await page.mouse.move(0, 0);
  await picture('console-try');

  const words = [main, 'token', '--audience', 'https://api.portcullis.example'];
  const token = execFileSync(process.execPath, words, { env: environment, encoding: 'utf8' }).trim();
  await fetch(new URL('/api/private', service), { headers: { authorization: `Bearer ${token}` } });
  await page.getByRole('link', { name: 'Decisions', exact: true }).click();
  await page.getByRole('link', { name: 'invalid_audience' }).first().click();
  await page.getByRole('table').waitFor();
  await page.mouse.move(0, 0);
  await page.waitForTimeout(300);
  await picture('console-decision');
  // The refusal alone, for the front page of the site.
  const box = async (part) => (await page.locator(part).boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
  const [pane, refusal] = [await box('.pane'), await box('.pane .decisive')];
  const clip = { ...pane, height: refusal.y + refusal.height + 22 - pane.y };
  await page.screenshot({ path: join(root, 'docs/images/site-refusal-explained.png'), clip });
  // The same on a desk and on a phone.
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 800 });
    await page.reload();
    await page.locator('.pane .decisive').waitFor();
    await picture(`site-console-${width}`);
  }
} finally {
  await browser.close();
  dev.kill();
}
