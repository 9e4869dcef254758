import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startBrowser } from '../support/browser.ts';
import type { OpenedService } from '../support/open-service.ts';
import { needs } from '../support/programs.ts';
import { startTestProvider, type TestProvider } from '../support/test-provider.ts';
import { findVariant, openVariant } from '../support/variant-service.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

describe('the documentation page, in a browser', needs('chromium'), () => {
  let provider: TestProvider;
  let service: OpenedService;
  let browser: Browser;
  let page: Page;
  const problems: string[] = [];

  beforeAll(async () => {
    provider = await startTestProvider();
    service = await openVariant(findVariant('a'), provider);
    browser = await startBrowser();
    page = await browser.newPage();
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('console', (message) => {
      if (message.type() === 'error') problems.push(message.text());
    });
    await page.goto(`${service.url}/docs`);
  });
  afterAll(async () => {
    await browser?.close();
    await service?.stop();
    await provider?.close();
  });

  it('curl lines name this service, and so does the OpenAPI document; the policy blocks nothing of the page', async () => {
    expect(await page.locator('article pre').allInnerTexts()).toContain(
      `curl -i -H "Authorization: Bearer $TOKEN" "${service.url}/api/private"`,
    );
    const document = await (await fetch(`${service.url}/openapi.json`)).json();
    expect(document).toMatchObject({ servers: [{ url: service.url }] });
    expect(problems).toEqual([]);
  });

  describe.each(['light', 'dark'] as const)('%s', (colorScheme) => {
    it.each([
      [1280, 900],
      [360, 740],
    ])('%i × %i: no finding of axe, and nothing to scroll sideways', async (width, height) => {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height });
      await page.evaluate(axe);
      const { violations } = (await page.evaluate('axe.run()')) as AxeResult;
      expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html.slice(0, 120))])).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).toBe(true);
      const folder = process.env['SCREENSHOTS'];
      if (folder !== undefined)
        await page.screenshot({ path: `${folder}/docs-${colorScheme}-${width}.png`, fullPage: true });
    });
  });
});

interface AxeResult {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
}
