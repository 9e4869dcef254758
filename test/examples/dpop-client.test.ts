import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPage, startBrowser } from '../support/browser.ts';
import { type DevProcess, startDev } from '../support/dev-process.ts';
import { listen } from '../support/listening.ts';
import { needs } from '../support/programs.ts';

// The console blocks of docs/dpop.md run the client in Node.
describe('client of docs/dpop.md in a browser', needs('chromium'), () => {
  let dev: DevProcess;
  let origin: string;
  let closeSite: (() => Promise<void>) | undefined;
  const site = createServer((request, response) => {
    const [, name] = /^\/([a-z-]+\.js)$/.exec(request.url ?? '') ?? [];
    if (name === undefined) {
      response.setHeader('content-type', 'text/html');
      return response.end(
        '<!doctype html><link rel="icon" href="data:,"><body><script type="module" src="page.js"></script>',
      );
    }
    const text = readFileSync(`examples/dpop/${name}`, 'utf8');
    const issuer = /Identity provider +(\S+)/.exec(dev.output)?.[1] ?? '';
    response.setHeader('content-type', 'text/javascript');
    return response.end(text.replace('https://localhost:9443/', issuer).replace('http://localhost:8000', dev.url));
  });
  beforeAll(async () => {
    const { port, close } = await listen(site);
    closeSite = close;
    origin = `http://localhost:${port}`;
    const nonces = { DPOP_NONCE: 'required', DPOP_NONCE_SECRET: 'x'.repeat(32) };
    dev = await startDev([], { ...nonces, CORS_ORIGINS: origin, ADMIN_PORT: '0' });
  });
  afterAll(async () => {
    await closeSite?.();
    await dev?.stop();
  });

  it('signs in, gets a token for its key, and repeats the request with the nonce → 200', async () => {
    const browser = await startBrowser();
    try {
      const { page } = await openPage(browser, `${origin}/`, { ignoreHTTPSErrors: true });
      page.setDefaultTimeout(60_000);
      await page.getByRole('button').first().click();
      await page.getByText(/^200 \{"message"/).waitFor();
      expect(page.url()).toContain(`${origin}/?code=`);
    } finally {
      await browser.close();
    }
  });
});
