import { type Browser, type BrowserContextOptions, chromium } from 'playwright-core';
import { requireProgram } from './programs.ts';
import { words } from './words.ts';

const args = words(`
  --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update
  --disable-sync
`);

/** Starts a headless browser with a new profile; it can reach only this host. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: requireProgram('chromium'),
    args: [
      ...args,
      '--host-resolver-rules=MAP console.evil.example 127.0.0.1, EXCLUDE localhost, EXCLUDE 127.0.0.1, MAP * ~NOTFOUND',
    ],
  });
}

/** One page, and what its browser has complained of. */
export type OpenedPage = Awaited<ReturnType<typeof openPage>>;

/** Opens a page in a new context. `problems`: errors of scripts, and what the content security policy has stopped. */
export async function openPage(browser: Browser, url: string, options: BrowserContextOptions = {}) {
  const context = await browser.newContext({ viewport: { width: 1240, height: 860 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const problems: string[] = [];
  page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
  page.on('pageerror', (error) => problems.push(String(error)));
  await page.goto(url);
  return { page, problems, close: () => context.close() };
}
