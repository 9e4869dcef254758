import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startBrowser } from '../support/browser.ts';
import { passStart } from '../support/pass-start.ts';
import { needs } from '../support/programs.ts';
import type { ServiceProcess } from '../support/service-process.ts';
import { startTestProvider, type TestProvider } from '../support/test-provider.ts';
import { findVariant, startVariant } from '../support/variant-service.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

describe('the documentation page, in a browser', needs('chromium'), () => {
  let provider: TestProvider;
  let service: ServiceProcess;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let problems: string[];

  beforeAll(async () => {
    provider = await startTestProvider();
    service = await startVariant(findVariant('a'), provider);
    browser = await startBrowser();
    context = await browser.newContext();
    await passStart();
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    await service?.stop();
    await provider?.close();
  });
  beforeEach(async () => {
    problems = [];
    page = await context.newPage();
    // What a policy forbids is told here, and so is a script that fails.
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('console', (message) => {
      // A refusal that was asked for is written down by the browser itself.
      if (message.type() === 'error' && !/status of 40[0-3]/.test(message.text())) problems.push(message.text());
    });
    await page.goto(`${service.url}/docs`);
  });
  afterEach(async () => {
    await page.close();
    expect(problems).toEqual([]);
  });

  const callOf = (path: string) => page.getByRole('button', { name: `Call GET ${path}`, exact: true });
  const answerOf = (path: string) =>
    page.getByRole('article', { name: `GET ${path}`, exact: true }).getByRole('status');
  const token = () => page.getByLabel('Access token');

  it('the calls name this service, and so does the OpenAPI document', async () => {
    expect(await page.locator('article pre').allInnerTexts()).toContain(
      `curl -i -H "Authorization: Bearer $TOKEN" "${service.url}/api/private"`,
    );
    const document = await (await fetch(`${service.url}/openapi.json`)).json();
    expect(document).toMatchObject({ servers: [{ url: service.url }] });
  });

  it('no running dev → no button for its tokens', async () => {
    await page.waitForLoadState('networkidle');
    expect(await page.getByRole('button', { name: 'Authorize' }).count()).toBe(0);
  });

  it('an open endpoint → 200 and its body, without the token', async () => {
    await token().fill(await provider.sign());
    const [request] = await Promise.all([
      page.waitForRequest(`${service.url}/api/public`),
      callOf('/api/public').click(),
    ]);
    expect(await request.headerValue('authorization')).toBeNull();
    await answerOf('/api/public').getByText('200 OK').waitFor();
    expect(await answerOf('/api/public').innerText()).toContain('"message": "Public endpoint');
  });

  it('no token → 401, the challenge, and what to do', async () => {
    await callOf('/api/private').click();
    await answerOf('/api/private').getByText('401 Unauthorized').waitFor();
    const text = await answerOf('/api/private').innerText();
    expect(text).toContain('WWW-Authenticate: Bearer');
    expect(text).toContain('No token was sent: paste one above.');
  });

  it('a token that is pasted → 200, with the keyboard only', async () => {
    await token().focus();
    await page.keyboard.insertText(await provider.sign());
    for (let i = 0; i < 60; i++) {
      await page.keyboard.press('Tab');
      if (await callOf('/api/private').evaluate((button) => button.matches(':focus'))) break;
    }
    await page.keyboard.press('Enter');
    await answerOf('/api/private').getByText('200 OK').waitFor();
    expect(await answerOf('/api/private').innerText()).toContain('"user_id"');
  });

  it('an expired token → 401 with its description, and how to see each check', async () => {
    await token().fill(await provider.sign({ exp: 1 }));
    await callOf('/api/private').click();
    await answerOf('/api/private').getByText('401 Unauthorized').waitFor();
    const text = await answerOf('/api/private').innerText();
    expect(text).toContain('"error": "invalid_token"');
    expect(text).toContain('portcullis explain');
  });

  it.each([
    ['Bearer x', 'Paste only the token, without Bearer or DPoP in front of it.'],
    ['a b', 'The token or the proof has a space or a line break in it.'],
  ])('%j → an error message, and no request', async (text, expected) => {
    let calls = 0;
    page.on('request', () => calls++);
    await token().fill(text);
    await callOf('/api/private').click();
    await answerOf('/api/private').getByText(expected).waitFor();
    expect(calls).toBe(0);
  });

  it('a proof → the DPoP scheme', async () => {
    await token().fill('x');
    await page.getByLabel('DPoP proof').fill('y');
    const [request] = await Promise.all([
      page.waitForRequest(`${service.url}/api/private`),
      callOf('/api/private').click(),
    ]);
    expect(await request.headerValue('authorization')).toBe('DPoP x');
    expect(await request.headerValue('dpop')).toBe('y');
    await answerOf('/api/private').getByText('401').first().waitFor();
  });

  it('the service is away → says so', async () => {
    await page.route('**/api/private', (route) => route.abort());
    await callOf('/api/private').click();
    await answerOf('/api/private').getByText('No response: the service cannot be reached from this page.').waitFor();
    problems = problems.filter((text) => !text.includes('ERR_FAILED'));
  });

  it('the token is kept nowhere: not in storage, cookies, URL or history, and not after a reload', async () => {
    const secret = await provider.sign();
    await token().fill(secret);
    await callOf('/api/private').click();
    await answerOf('/api/private').getByText('200 OK').waitFor();
    const kept = await page.evaluate(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, history.state])',
    );
    expect(kept).toBe(JSON.stringify([{}, {}, '', `${service.url}/docs`, null]));
    expect(await context.cookies()).toEqual([]);
    expect(await page.evaluate('indexedDB.databases()')).toEqual([]);
    await page.reload();
    expect(await token().inputValue()).toBe('');
    await token().fill(secret);
    await page.goto('about:blank');
    await page.goBack();
    expect(await token().inputValue()).toBe('');
  });

  it('Forget → the fields are empty', async () => {
    await token().fill('x');
    await page.getByLabel('DPoP proof').fill('y');
    await page.getByRole('button', { name: 'Forget' }).click();
    expect([await token().inputValue(), await page.getByLabel('DPoP proof').inputValue()]).toEqual(['', '']);
  });

  it('its policy holds: no script from a string, no other origin, no frame', async () => {
    const outcome = await page.evaluate(`(async () => {
      const blocked = [];
      document.addEventListener('securitypolicyviolation', ({ effectiveDirective }) => blocked.push(effectiveDirective));
      let thrown = false;
      try { document.body.insertAdjacentHTML('beforeend', '<b>x</b>'); } catch { thrown = true; }
      await fetch('http://localhost:9/').catch(() => undefined);
      const script = document.createElement('script');
      try { script.textContent = 'window.evil = 1'; document.body.append(script); } catch { }
      await new Promise((resolve) => setTimeout(resolve, 50));
      return [thrown, window.evil ?? null, blocked.includes('connect-src')];
    })()`);
    expect(outcome).toEqual([true, null, true]);
    problems = problems.filter((text) => !/Content Security Policy|TrustedHTML|TrustedScript|ERR_/.test(text));
  });

  describe.each(['light', 'dark'] as const)('%s', (colorScheme) => {
    it.each([
      [1280, 900],
      [360, 740],
    ])('%i × %i: no finding of axe, and nothing to scroll sideways', async (width, height) => {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height });
      await callOf('/api/private').click();
      await answerOf('/api/private').getByText('401 Unauthorized').waitFor();
      for (const details of await page.locator('summary').all()) await details.click();
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
