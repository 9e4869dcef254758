import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import axe, { type AxeResults } from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { listen, stop } from '../../tools/shared/network.js';
import { type OpenedPage, openPage, startBrowser } from '../support/browser.ts';
import { runCommand } from '../support/command-runs.ts';
import { makeKeyFolder } from '../support/console-client.ts';
import { type DevProcess, startDev } from '../support/dev-process.ts';
import { send } from '../support/http-client.ts';
import { openService } from '../support/open-service.ts';
import { passStart } from '../support/pass-start.ts';
import { needs } from '../support/programs.ts';

describe('the page of the console in a browser', needs('chromium'), () => {
  let dev: DevProcess;
  let browser: Browser;
  let opened: OpenedPage;
  let page: Page;

  beforeAll(async () => {
    dev = await startDev([]);
    browser = await startBrowser();
    opened = await openPage(browser, await dev.consoleLink());
    page = opened.page;
    await page.waitForURL('**/console');
    await passStart();
  });
  afterAll(async () => {
    await browser?.close();
    await dev?.stop();
  });

  const heading = (name: string | RegExp) => page.getByRole('heading', { name });
  const openView = async (name: string): Promise<void> => {
    await page.getByRole('link', { name, exact: true }).click();
    await heading(name).waitFor();
  };
  /** Sends a try from the page. Returns the statuses. */
  const tryKind = async (kind: string, endpoint = '/api/private-scoped'): Promise<readonly string[]> => {
    await openView('Try it');
    await page.getByLabel('Endpoint').selectOption(endpoint);
    await page.getByRole('radio', { name: kind }).first().check();
    await page.getByRole('button', { name: 'Send request' }).click();
    await page.getByRole('heading', { name: /^Status/ }).waitFor();
    const statuses = await page.locator('.tried .status').allTextContents();
    await page.locator('.tried details:visible .checks, .tried details:visible .decisive').last().waitFor();
    return statuses;
  };

  it('link with the key → page with landmarks, names, one heading, nothing in the URL or in storage', async () => {
    expect(new URL(page.url()).search).toBe('');
    await page.getByRole('banner').waitFor();
    await page.getByRole('main').waitFor();
    await page.getByRole('navigation', { name: 'Views' }).waitFor();
    expect(await page.getByRole('heading', { level: 1 }).allTextContents()).toEqual(['Decisions']);
    expect(await page.title()).toBe('Decisions · Portcullis console');
    expect(await page.evaluate('[localStorage.length, sessionStorage.length, document.cookie]')).toEqual([0, 0, '']);
    await page.getByText('Ready', { exact: true }).waitFor();
  });

  it('link opens several pages; without its key → a page that says how to get it', async () => {
    const link = await dev.consoleLink();
    for (let times = 0; times < 2; times++) {
      const { page: own, close } = await openPage(browser, link);
      await own.getByRole('heading', { name: 'Decisions' }).waitFor();
      await close();
    }
    const without = link.replace(/\?.*/, '');
    const refused = await openPage(browser, without);
    expect(await refused.page.textContent('body')).toContain('The console needs its key');
    expect(await refused.page.evaluate('getComputedStyle(document.body).maxWidth')).toBe('640px');
    expect(refused.problems.filter((text) => !text.includes('401'))).toEqual([]);
    const axed = await openPage(browser, without, { bypassCSP: true });
    const { violations } = (await axed.page.evaluate(`${axe.source}; axe.run()`)) as AxeResults; // what axe gives
    expect(violations.map(({ id }) => id)).toEqual([]);
    await axed.close();
    await refused.close();
  });

  it.each([
    ['No token', ['401'], 'missing_credentials'],
    ['Valid token', ['200'], undefined],
    ['Expired', ['401'], 'expired'],
    ['Wrong audience', ['401'], 'invalid_audience'],
    ['Missing scope', ['403'], 'insufficient_scope'],
    ['DPoP with nonce', ['200'], undefined],
    ['DPoP, replayed', ['200', '401'], 'proof_replayed'],
  ])('try: %s → %j and its checks', async (kind, statuses, reason) => {
    expect(await tryKind(kind)).toEqual(statuses);
    const last = page.locator('.tried article').last();
    expect(await last.locator('pre').first().textContent()).toContain('curl -i');
    if (reason === undefined) expect(await last.locator('tr.fail').count()).toBe(0);
    else if (reason === 'proof_replayed') await last.getByText('Fix').first().waitFor();
    else expect(await last.locator('tr.fail').count()).toBeGreaterThan(0);
    if (reason === undefined) return;
    await openView('Decisions');
    await page.getByRole('link', { name: reason }).first().waitFor();
  });

  it('tokens and proofs → only their first and last characters are in the page', async () => {
    await tryKind('DPoP, replayed');
    const html = await page.content();
    expect(html).toMatch(/Authorization: DPoP eyJh…\S\S'/);
    expect(html).toMatch(/DPoP: eyJ\w…\S\S'/);
    expect(html).not.toMatch(/eyJ[\w-]{8}/);
  });

  it('new request → listed, with every check', async () => {
    await openView('Decisions');
    const { status } = await send(dev.url, '/api/private', { headers: ['Authorization', 'Bearer undefined'] });
    expect(status).toBe(401);
    await page
      .getByRole('link', { name: /placeholder|opaque/ })
      .first()
      .click();
    const title = page.getByRole('region', { name: 'One decision' }).getByRole('heading', { level: 2 });
    await title.waitFor();
    await expect.poll(() => page.evaluate('document.activeElement.tagName')).toBe('H2');
    await page.getByRole('table', { name: /Every check/ }).waitFor();
    await page.getByText('Fix').first().waitFor();
    await page.goBack();
    // The newest refusal is open, and the focus stays in the list.
    await page.locator('.split:not(.chosen) .pane .decisive').waitFor();
    expect(await page.evaluate("document.activeElement.closest('.pane')")).toBe(null);
  });

  it('id chosen by the caller → not found', async () => {
    const answer = await send(dev.url, '/api/private', { headers: ['X-Request-Id', 'chosen-by-the-caller'] });
    await page.evaluate(`location.hash = 'decision/${answer.headers.get('x-request-id')}'`);
    await page.getByRole('table', { name: /Every check/ }).waitFor();
    await page.evaluate("location.hash = 'decision/chosen-by-the-caller'");
    await page.getByText('no longer has this one').waitFor();
  });

  it('filter and pause → the list follows', async () => {
    await openView('Decisions');
    await page.getByRole('radio', { name: 'Refused' }).check();
    const rows = page.locator('.list ol > li');
    expect(await rows.count()).toBeGreaterThan(3);
    expect(await page.locator('.list .status.allowed').count()).toBe(0);
    await page.getByRole('radio', { name: 'All' }).check();
    await page.getByRole('button', { name: 'Pause' }).click();
    const before = await rows.count();
    await send(dev.url, '/api/public');
    await page.getByRole('button', { name: /Continue \([0-9]+ new\)/ }).click();
    await expect.poll(() => rows.count()).toBeGreaterThan(before);
  });

  it('refused decision → opens at the failed check, with the difference, copies of id and fix, a link', async () => {
    await tryKind('Wrong audience');
    await openView('Decisions');
    await page.getByRole('link', { name: 'invalid_audience' }).first().click();
    const pane = page.getByRole('region', { name: 'One decision' });
    await pane.getByRole('table').waitFor();
    expect(await pane.locator('.decisive mark').allTextContents()).toEqual(['nother-api', 'pi.portcullis']);
    const expanded = await pane.getByRole('button', { expanded: true }).allTextContents();
    expect(expanded.map((text) => text.trim().replace(/ .*/s, ''))).toEqual(['Claims']);
    expect(await pane.locator('tr.skipped .verdict').allTextContents()).toContain('not applicable');
    const owner = pane.getByRole('button', { name: 'Binding of the token' });
    expect(await owner.textContent()).toContain('3 not applicable');
    await owner.click();
    const presented = pane.getByRole('row', { name: /^certificate presented/i });
    expect(await presented.textContent()).toContain('not applicable');
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    const copied = async (name: string): Promise<unknown> => {
      await pane
        .getByRole('button', { name: new RegExp(`^Copy ?: ${name}$`) })
        .first()
        .click();
      await pane.getByRole('button', { name: new RegExp(`^Copied ?: ${name}$`) }).waitFor();
      return page.evaluate('navigator.clipboard.readText()');
    };
    expect(await copied('id')).toBe(new URL(page.url()).hash.replace('#decision/', ''));
    expect(await copied('fix')).toMatch(/^Request the token for this API/);
    const reason = pane.getByRole('link', { name: 'About invalid_audience' });
    expect(await reason.getAttribute('href')).toMatch(/\/refusals\.md#invalid_audience$/);
  });

  it('replayed proof → the check of the proof fails', async () => {
    await tryKind('DPoP, replayed');
    await openView('Decisions');
    await page.getByRole('link', { name: 'proof_replayed' }).first().click();
    const failed = page.getByRole('region', { name: 'One decision' }).locator('tr.fail');
    expect(await failed.getByRole('rowheader').textContent()).toBe('proof not used before');
  });

  it('search and reasons → the list follows, and the filter is in the URL', async () => {
    await openView('Decisions');
    await send(dev.url, '/orders/nowhere');
    const rows = page.locator('.list ol > li');
    await page.keyboard.press('/');
    await page.keyboard.type('/ORDERS/no');
    await expect.poll(() => rows.allTextContents()).toEqual([expect.stringContaining('GET /orders/nowhere')]);
    expect(new URL(page.url()).hash).toBe('#decisions?q=%2FORDERS%2Fno');
    await page.keyboard.press('Escape');
    const expired = page.getByRole('button', { name: /^expired [1-9]/ });
    await expired.click();
    expect(new URL(page.url()).hash).toBe('#decisions?reason=expired');
    expect(new Set(await page.locator('.list .why').allTextContents())).toEqual(new Set(['expired']));
    expect(await rows.count()).toBe(Number((await expired.textContent())?.replace(/\D/g, '')));
    await page.reload();
    await expect.poll(() => expired.getAttribute('aria-pressed')).toBe('true');
    expect(new Set(await page.locator('.list .why').allTextContents())).toEqual(new Set(['expired']));
    await expired.click();
    expect(new URL(page.url()).hash).toBe('#decisions');
  });

  const paste = async (text: string, of = page): Promise<void> => {
    await of.getByRole('textbox', { name: 'Token, curl command or request' }).fill(text);
    await of.getByRole('button', { name: 'Explain' }).click();
  };

  it('paste → explained; the text is in no storage', async () => {
    await openView('Paste');
    await paste('Bearer undefined');
    const result = page.getByRole('region', { name: 'Result' });
    await result.getByRole('heading', { name: /^Refused/ }).waitFor();
    await expect.poll(() => page.evaluate('document.activeElement.tagName')).toBe('H2');
    await result.getByText('Fix').first().waitFor();
    await paste('one two three');
    await page.getByRole('alert').waitFor();
    const commands = `curl '${dev.url}/api/private' ;\ncurl '${dev.url}/api/private-scoped' -H 'Authorization: Bearer x'`;
    await paste(commands);
    await result.getByText('GET /api/private', { exact: true }).waitFor();
    await expect.poll(() => page.evaluate('document.activeElement.textContent')).toMatch(/^2 requests/);
    expect(await result.locator('article .plain').first().textContent()).toBe('GET /api/private-scoped');
    expect(await page.evaluate('localStorage.length + sessionStorage.length')).toBe(0);
    await paste(`curl '${dev.url}/api/public'`);
    await result.getByText('The route is open to all: tokens are ignored.').waitFor();
    await openView('Decisions');
    await openView('Paste');
    expect(await page.getByRole('textbox').inputValue()).toBe('');
  });

  it('arrows and Escape → the next decision, the previous one, none', async () => {
    await openView('Decisions');
    const ids = await page
      .locator('.list ol a')
      .evaluateAll((links) => links.map((link) => link.getAttribute('data-id')));
    const chosen = () => new URL(page.url()).hash;
    const heard = async (key: string, hash: string): Promise<void> => {
      await page.keyboard.press(key);
      await expect.poll(chosen).toBe(hash);
    };
    await heard('ArrowDown', `#decision/${ids[0]}`);
    await heard('ArrowDown', `#decision/${ids[1]}`);
    await heard('ArrowUp', `#decision/${ids[0]}`);
    await heard('Escape', '#decisions');
  });

  it('configuration → endpoints, keys, events, settings', async () => {
    await openView('Configuration');
    await page.getByText('scope read:messages').waitFor();
    await page.getByText('usable', { exact: true }).waitFor();
    await page.getByText('keys fetched').waitFor();
    await page.getByText('https://api.portcullis.example/').waitFor();
  });

  it('keyboard only → a try and its result', async () => {
    const keyboard = await openPage(browser, await dev.consoleLink());
    const { page: own } = keyboard;
    await own.getByRole('link', { name: 'Try it' }).waitFor(); // also while the state is loading
    const focused = () => own.evaluate('document.activeElement.textContent.trim() || document.activeElement.tagName');
    await own.keyboard.press('Tab');
    expect(await focused()).toBe('Skip to content');
    await own.keyboard.press('Enter');
    expect(await own.evaluate('document.activeElement.id')).toBe('content');
    for (let tabs = 0; tabs < 3; tabs++) await own.keyboard.press('Shift+Tab');
    expect(await focused()).toBe('Try it');
    await own.keyboard.press('Enter');
    await own.getByRole('heading', { name: 'Try it' }).waitFor();
    await expect.poll(focused).toBe('Try it');
    await expect.poll(() => own.evaluate('document.activeElement.tagName')).toBe('H1');
    for (let tabs = 0; tabs < 4; tabs++) await own.keyboard.press('Tab');
    expect(await own.evaluate('document.activeElement.value')).toBe('good');
    await own.keyboard.press('ArrowDown');
    expect(await own.evaluate('document.activeElement.value')).toBe('expired');
    await own.keyboard.press('Enter');
    await expect.poll(focused).toBe('Status 401');
    // Every focused element has a visible outline.
    const rings: unknown[] = [];
    const ring =
      'getComputedStyle(document.activeElement).outlineStyle + document.activeElement.outerHTML.slice(0, 80)';
    for (let tabs = 0; tabs < 8; tabs++) {
      await own.keyboard.press('Tab');
      rings.push(await own.evaluate(ring));
    }
    expect(rings.filter((style) => /^none<(?!body)/.test(String(style)))).toEqual([]);
    expect(keyboard.problems).toEqual([]);
    await keyboard.close();
  });

  it.each([
    ['light', 1240],
    ['dark', 390],
    ['light', 320],
    ['light', 2200],
  ] as const)('%s, %d px → no violation by axe, no horizontal scrolling', async (colorScheme, width) => {
    const own = await openPage(browser, await dev.consoleLink(), {
      colorScheme,
      viewport: { width, height: 740 },
      bypassCSP: true, // for axe, which is no part of the page
    });
    await own.page.getByRole('heading', { name: 'Decisions' }).waitFor();
    await own.page.evaluate(axe.source);
    const check = async (view: string): Promise<void> => {
      const run = 'axe.run(document, { resultTypes: ["violations"] })';
      const { violations } = (await own.page.evaluate(run)) as AxeResults; // what axe gives
      const found = violations.map(({ id, nodes }) => `${view}: ${id}: ${nodes.map(({ html }) => html).join(' ')}`);
      expect(found).toEqual([]);
      expect(await own.page.evaluate('document.documentElement.scrollWidth'), view).toBeLessThanOrEqual(width);
    };
    await own.page.locator('.pane .decisive').waitFor();
    await check('decisions');
    await own.page.getByRole('link', { name: 'insufficient_scope' }).first().click();
    await own.page.getByRole('table').waitFor();
    await check('decision');
    await own.page.getByRole('link', { name: 'Try it', exact: true }).click();
    await own.page.getByRole('button', { name: 'Send request' }).waitFor();
    await check('try');
    await own.page.getByRole('radio', { name: 'DPoP, replayed' }).check();
    await own.page.getByRole('button', { name: 'Send request' }).click();
    await own.page.locator('.tried .decisive:visible').waitFor();
    await check('tried');
    await own.page.getByRole('link', { name: 'Paste' }).click();
    await paste('Bearer undefined', own.page);
    await own.page.locator('.decisive').waitFor();
    await check('paste');
    const { stdout } = await runCommand(['token', '--audience', 'a'.repeat(300)], dev.environment);
    await paste(stdout, own.page);
    await own.page.getByText('the token is for aaa').waitFor();
    await check('a long value');
    await own.page.getByRole('link', { name: 'Configuration' }).click();
    await own.page.getByText('keys fetched').waitFor();
    await check('configuration');
    await own.close();
  });

  it('foreign name that resolves to loopback (DNS rebinding) → 421, even with the key', async () => {
    const link = new URL(await dev.consoleLink());
    const { port } = link;
    link.hostname = 'console.evil.example';
    const own = await openPage(browser, link.href);
    expect(await own.page.textContent('body')).toContain('loopback name');
    const answer = await own.page.evaluate(
      `fetch('http://console.evil.example:${port}/console/api/state').then((a) => a.status)`,
    );
    expect(answer).toBe(421);
    await own.close();
    const inside = await openPage(browser, await dev.consoleLink());
    await inside.page.getByRole('main').waitFor();
    await inside.close();
  });

  it('foreign page, even on this host → can neither post, read nor frame', async () => {
    const foreign = createServer((_, response) => {
      response.setHeader('content-type', 'text/html').end('<!doctype html><title>foreign</title><body></body>');
    });
    const port = await listen(foreign);
    const console = new URL(dev.adminUrl).origin;
    // In the context that has the cookie.
    const tab = await page.context().newPage();
    try {
      const seen: number[] = [];
      tab.on('response', (response) => response.url().startsWith(console) && seen.push(response.status()));
      await tab.goto(`http://127.0.0.1:${port}/`);
      const outcomes = await tab.evaluate(`Promise.all([
        fetch('${console}/console/api/try', { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{}' }).then((a) => a.type, () => 'failed'),
        fetch('${console}/console/api/try', { method: 'POST', credentials: 'include', headers: { 'content-type': 'application/json' }, body: '{}' }).then(() => 'read', () => 'failed'),
        fetch('${console}/console/api/state', { credentials: 'include' }).then(() => 'read', () => 'failed'),
        new Promise((resolve) => {
          const source = new EventSource('${console}/console/api/events', { withCredentials: true });
          source.onmessage = () => resolve('read');
          source.onerror = () => { source.close(); resolve('failed'); };
        }),
        new Promise((resolve) => {
          const frame = document.createElement('iframe');
          frame.src = '${console}/console';
          frame.onload = () => { try { resolve(frame.contentDocument ? 'read' : 'failed'); } catch { resolve('failed'); } };
          document.body.append(frame);
        }),
      ])`);
      expect(outcomes).not.toContain('read');
      // Some are stopped by the browser before they are sent.
      expect(new Set(seen)).toEqual(new Set([403]));
    } finally {
      await tab.close();
      await stop(foreign);
    }
  });

  it('inline scripts, eval, other origins, strings as scripts → stopped by the policy of the page', async () => {
    const own = await openPage(browser, await dev.consoleLink());
    await own.page.getByRole('main').waitFor();
    const outcomes = await own.page.evaluate(`(async () => {
      const attempt = (what) => { try { what(); return 'done'; } catch { return 'stopped'; } };
      const inline = document.createElement('script');
      return {
        html: attempt(() => { document.body.innerHTML = '<p>x</p>'; }),
        text: attempt(() => { inline.textContent = 'window.hacked = 1'; document.body.append(inline); }),
        policy: attempt(() => trustedTypes.createPolicy('mine', {})),
        fetch: await fetch('http://localhost:1/').then(() => 'done', () => 'stopped'),
        hacked: window.hacked === undefined,
      };
    })()`);
    expect(outcomes).toEqual({ html: 'stopped', text: 'stopped', policy: 'stopped', fetch: 'stopped', hacked: true });
    await own.close();
  });

  it('use of the page → no error, no violation of its policy', () => {
    expect(opened.problems).toEqual([]);
  });

  it('service stops → the page reports it, then marks old rows', async () => {
    await openView('Decisions');
    await dev.stop();
    await page.getByText('Connection lost').waitFor();
    await page.getByText('portcullis dev prints it.').waitFor();
    expect(await page.locator('.list ol .old').count()).toBe(0);
    await page.getByText('The service has stopped, or was restarted on another port.').waitFor();
    await page.getByText('portcullis dev prints it.').waitFor();
    const rows = await page.locator('.list ol .why').allTextContents();
    expect(rows.filter((text) => !text.endsWith('(before the service stopped)'))).toEqual([]);
  });
});

describe('the page of serve', needs('chromium'), () => {
  /** Opens a service with its console, and its page. */
  async function open() {
    const folder = await makeKeyFolder();
    onTestFinished(folder.close);
    const environment = { IDP_DOMAIN: '127.0.0.1:9', IDP_AUDIENCE: 'urn:api', ...folder.environment };
    const service = await openService({ environment });
    const browser = await startBrowser();
    onTestFinished(() => browser.close());
    const { page } = await openPage(browser, `${service.adminUrl}/console?key=${await folder.readKey()}`);
    await page.getByText('serve', { exact: true }).waitFor();
    const command = page.getByRole('region', { name: 'Command that prints the new link' });
    return { environment, service, page, command };
  }

  it('restart on the same port → banner with the command for a new link, old rows marked', async () => {
    const { environment, service, page, command } = await open();
    await send(service.url, '/api/private');
    await page.locator('.list').getByRole('link', { name: 'missing_credentials' }).waitFor();
    expect(await page.getByRole('navigation').getByRole('link').allTextContents()).not.toContain('Try it');
    await service.stop();
    const { port } = new URL(service.adminUrl ?? '');
    const other = await openService({ environment: { ...environment, ADMIN_PORT: port } });
    onTestFinished(async () => void (await other.stop()));
    await page.getByText('The service was restarted, or').waitFor();
    const rows = await page.locator('.list ol .why').allTextContents();
    expect(rows).toEqual(['missing_credentials (before the restart)']);
    const text = await command.textContent();
    await page.goto(execFileSync('sh', ['-c', text ?? ''], { encoding: 'utf8' }).trim());
    await page.waitForURL('**/console');
    await page.getByText('No requests yet').waitFor();
  });

  it('stopped service → a command with PORT', async () => {
    const { service, page, command } = await open();
    await service.stop();
    await page.getByText('was restarted on another port.').waitFor();
    expect(await command.textContent()).toContain('"http://127.0.0.1:PORT/console?key=');
  });
});

describe('the files of the page', () => {
  it('page of production → nothing of Try it; each file has the licences', () => {
    const files = ['page.js', 'shared-page.js', 'dev.js'].map((name) => readFileSync(`dist/console/${name}`, 'utf8'));
    expect(files.map((text) => text.includes('/console/api/try'))).toEqual([false, false, true]);
    for (const text of ['Apache License 2.0', 'MIT License', 'Jason Miller', 'With htm 3'])
      expect(files.map((file) => file.includes(text))).toEqual([true, true, true]);
  });
});
