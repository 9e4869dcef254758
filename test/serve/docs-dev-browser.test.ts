import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startBrowser } from '../support/browser.ts';
import { type DevProcess, startDev } from '../support/dev-process.ts';
import { send } from '../support/http-client.ts';
import { needs } from '../support/programs.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface Claims {
  readonly scope?: string;
  readonly cnf?: { readonly jkt: string };
  readonly jti?: string;
  readonly nonce?: string;
}
const decode = (jwt: string, part: 0 | 1): Claims =>
  JSON.parse(Buffer.from(jwt.split('.')[part] ?? '', 'base64url').toString());

describe('the documentation page of dev, in a browser', needs('chromium'), () => {
  let dev: DevProcess;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let problems: string[];

  beforeAll(async () => {
    dev = await startDev([], { DPOP_NONCE: 'required', DPOP_NONCE_SECRET: 'x'.repeat(40) });
    browser = await startBrowser();
    context = await browser.newContext();
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    await dev?.stop();
  });
  beforeEach(async () => {
    problems = [];
    page = await context.newPage();
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('console', (message) => {
      if (message.type() === 'error' && !/status of 40[0-3]/.test(message.text())) problems.push(message.text());
    });
    await page.addInitScript(`{
      const generate = crypto.subtle.generateKey.bind(crypto.subtle);
      crypto.subtle.generateKey = async (...args) => (window.made = await generate(...args));
    }`);
    await page.goto(`${dev.url}/docs`);
    await authorize().waitFor();
  });
  afterEach(async () => {
    await page.close();
    expect(problems).toEqual([]);
  });

  const authorize = () => page.getByRole('button', { name: 'Authorize' });
  const bound = () => page.getByLabel('Bound to a key of this page');
  const token = () => page.getByLabel('Access token');
  const call = (path: string) => page.getByRole('button', { name: `Call GET ${path}`, exact: true }).click();
  const answerOf = (path: string) =>
    page.getByRole('article', { name: `GET ${path}`, exact: true }).getByRole('status');

  it('Authorize → a token of the local provider with the scopes, and the call is admitted', async () => {
    await authorize().click();
    await page.getByText('A token is above.').waitFor();
    expect(decode(await token().inputValue(), 1)).toMatchObject({ scope: 'read:messages' });
    await call('/api/private-scoped');
    await answerOf('/api/private-scoped').getByText('200 OK').waitFor();
  });

  it('bound → a new proof for each call, with the nonce of the service and a key that cannot be exported', async () => {
    const proofs: string[] = [];
    page.on('request', (request) => {
      const { dpop } = request.headers();
      if (dpop !== undefined) proofs.push(dpop);
    });
    await bound().check();
    await authorize().click();
    await page.getByText('A bound token is above.').waitFor();
    for (let times = 0; times < 2; times++) {
      await call('/api/private');
      await answerOf('/api/private').getByText('200 OK').waitFor();
    }
    // The first has no nonce, so it is made again.
    expect(proofs.map((proof) => decode(proof, 1).nonce !== undefined)).toEqual([false, true, true]);
    expect(new Set(proofs.map((proof) => decode(proof, 1).jti)).size).toBe(3);
    const { cnf } = decode(await token().inputValue(), 1);
    expect(cnf?.jkt).toMatch(/^[\w-]{43}$/);
    expect(await page.evaluate('[made.privateKey.extractable, made.privateKey.usages]')).toEqual([false, ['sign']]);
    await expect(page.evaluate("crypto.subtle.exportKey('jwk', made.privateKey)")).rejects.toThrow('not extractable');
    await page.getByRole('button', { name: 'Forget' }).click();
    await call('/api/private');
    await answerOf('/api/private').getByText('No token was sent').waitFor();
  });

  it('a refusal → the link to its decision in the console', async () => {
    await page.getByLabel('Scopes of a token').fill('');
    await authorize().click();
    await page.getByText('A token is above.').waitFor();
    await call('/api/private-scoped');
    await answerOf('/api/private-scoped').getByText('403 Forbidden').waitFor();
    const link = answerOf('/api/private-scoped').getByRole('link', { name: 'in the console' });
    const address = (await link.getAttribute('href')) ?? '';
    expect(address).toMatch(new RegExp(`^${dev.adminUrl}/console#decision/[\\w-]{19}$`));
    const console = await context.newPage();
    await console.goto(await dev.consoleLink());
    await console.getByRole('main').waitFor();
    await console.goto(address);
    await console.getByText('insufficient_scope').first().waitFor();
    await console.close();
  });

  it('no token is stored: not in storage, cookies or the URL', async () => {
    await authorize().click();
    await page.getByText('A token is above.').waitFor();
    const kept = await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href])');
    expect(kept).toBe(JSON.stringify([{}, {}, `${dev.url}/docs`]));
    expect(await page.evaluate('indexedDB.databases()')).toEqual([]);
  });

  it('no finding of axe, and nothing to scroll sideways', async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    await call('/api/private');
    await answerOf('/api/private').getByRole('link').waitFor();
    await page.evaluate(axe);
    const { violations } = (await page.evaluate('axe.run()')) as { readonly violations: readonly { id: string }[] };
    expect(violations.map(({ id }) => id)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).toBe(true);
  });

  it.each<[string, readonly string[]]>([
    ['no browser', []],
    ['another page', ['Sec-Fetch-Site', 'cross-site']],
    ['another port of this host', ['Sec-Fetch-Site', 'same-site']],
    ['a name that resolves to this host', ['Sec-Fetch-Site', 'same-origin', 'Host', 'evil.example']],
    ['a proxy', ['Sec-Fetch-Site', 'same-origin', 'X-Forwarded-For', '10.0.0.1']],
  ])('/docs/token from %s → 404', async (_, headers) => {
    expect((await send(dev.url, '/docs/token?scope=', { headers })).status).toBe(404);
  });

  it('/docs/token from the page → not stored; an invalid jkt is ignored', async () => {
    const headers = ['Sec-Fetch-Site', 'same-origin'];
    const answer = await send(dev.url, '/docs/token?scope=read:messages&jkt=x', { headers });
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store']);
    const { token: minted } = answer.json as { readonly token: string };
    expect(decode(minted, 1).cnf).toBeUndefined();
  });
});
