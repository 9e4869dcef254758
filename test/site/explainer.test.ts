import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import axe, { type AxeResults } from 'axe-core';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleExplainer } from '../../site/explainer/bundle.js';
import { createTestIssuer, type TokenFlaw } from '../../src/testing/index.ts';
import { type OpenedPage, openPage, startBrowser } from '../support/browser.ts';
import { needs } from '../support/programs.ts';

const audience = 'https://api.test/';
const issuer = createTestIssuer({ audience });
const jwks = JSON.stringify(issuer.jwks);
const types: Readonly<Record<string, string>> = { html: 'text/html', js: 'text/javascript', css: 'text/css' };
const folder = mkdtempSync(join(tmpdir(), 'portcullis-explainer-'));

let files: Server;
let url: string;
beforeAll(async () => {
  await bundleExplainer(folder);
  files = createServer(({ url: path = '/' }, response) => {
    const name = path.slice(1);
    response.setHeader('content-type', types[name.split('.').at(-1) ?? ''] ?? 'text/plain');
    // A browser also requests an icon.
    if (existsSync(join(folder, name))) response.end(readFileSync(join(folder, name)));
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => files.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(files.address() as AddressInfo).port}/explainer.html`; // it listens on TCP
});
afterAll(() => {
  files?.close();
  rmSync(folder, { recursive: true });
});

describe('the bundle', () => {
  it('imports no module of Node, and page and script have at most 200 KB compressed', () => {
    const script = readFileSync(join(folder, 'explainer.js'), 'utf8');
    expect(script).not.toMatch(/\b(?:import|require)\s*\(|\bimport\s*["'{*]/);
    expect(gzipSync(script).length).toBeLessThan(190 * 1024);
  });

  it('the policy of the page forbids every connection', () => {
    const html = readFileSync(join(folder, 'explainer.html'), 'utf8');
    expect(html).toContain("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'none'");
  });
});

describe('in a browser', needs('chromium'), () => {
  let browser: Browser;
  let opened: OpenedPage;
  beforeAll(async () => {
    browser = await startBrowser();
    opened = await openPage(browser, url);
  });
  afterAll(() => browser?.close());

  async function explain(input: string, values: Readonly<Record<string, string>> = {}): Promise<string> {
    const { page } = opened;
    await page.evaluate('document.querySelector("details").open = true; document.getElementById("form").reset()');
    await page.fill('#input', input);
    for (const [id, value] of Object.entries(values)) await page.fill(`#${id}`, value);
    await page.click('button[type=submit]');
    await page.waitForSelector('#result h2');
    return page.innerText('#result');
  }

  const named = { issuer: issuer.issuer, audience, keys: jwks };
  it.each<readonly [string, string, Readonly<Record<string, string>>, RegExp]>([
    ['a valid token and its keys', issuer.token(), named, /^admitted/],
    ['a changed signature', issuer.flawed('invalid_signature'), named, /^refused · invalid_signature · 401/],
    ['an expired token', issuer.flawed('expired'), named, /^refused · expired · 401[\s\S]*fix/],
    [
      'a missing scope',
      issuer.token({ scope: 'a' }),
      { ...named, scopes: 'a b' },
      /^refused · insufficient_scope · 403/,
    ],
    ['no keys', issuer.token(), { issuer: issuer.issuer, audience }, /^undecided/],
    [
      'several curl commands',
      ['expired', 'invalid_audience']
        .map((flaw) => `curl -H 'Authorization: Bearer ${issuer.flawed(flaw as TokenFlaw)}' https://api.test/x`)
        .join('\n'),
      named,
      /^refused · expired[\s\S]*\nrefused · invalid_audience/,
    ],
    ['an HTTPie command', `http GET https://api.test/x Authorization:'Bearer ${issuer.token()}'`, named, /^admitted/],
    [
      'a response',
      'HTTP/1.1 403 Forbidden\nWWW-Authenticate: Bearer error="insufficient_scope"\n\n',
      {},
      /^(?:undecided|refused)[\s\S]*insufficient_scope[\s\S]*fix/,
    ],
    ['a log line', '{"time":"2026-01-01T00:00:00Z","reason":"invalid_audience"}', {}, /^refused · invalid_audience/],
    ['keys that are not a JWK set', issuer.token(), { ...named, keys: '{}' }, /^Keys: must be a JWK set/],
    ['something else', 'hello, this is not a token', {}, /^The input is not recognised/],
  ])('%s', async (_input, input, values, expected) => expect(await explain(input, values)).toMatch(expected));

  it('a DPoP proof → verified in the page; for another URL → proof_url_mismatch', async () => {
    const client = issuer.dpopClient();
    const { authorization, dpop } = client.headers({ method: 'GET', url: 'https://api.test/x' });
    const request = `GET /x HTTP/1.1\nHost: api.test\nAuthorization: ${authorization}\nDPoP: ${dpop}\n\n`;
    const at = { ...named, url: 'https://api.test/x' };
    expect(await explain(request, at)).toMatch(/^admitted/);
    expect(await explain(request, { ...at, url: 'https://api.test/y' })).toMatch(/^refused · proof_url_mismatch/);
  });

  it('an explained token → no request, nothing stored, not in the address', async () => {
    const { page } = opened;
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    await explain(issuer.token(), named);
    expect(requests).toEqual([]);
    expect(await page.evaluate('[localStorage.length, sessionStorage.length, document.cookie, location.href]')).toEqual(
      [0, 0, '', url],
    );
    await expect(page.evaluate("fetch('/explainer.css')")).rejects.toThrow();
  });

  it.each([390, 1280])('%d px → no violation by axe, no horizontal scrolling', async (width) => {
    const own = await openPage(browser, url, { viewport: { width, height: 900 }, bypassCSP: true });
    await own.page.fill('#input', issuer.flawed('expired'));
    await own.page.click('button[type=submit]');
    await own.page.waitForSelector('#result h2');
    await own.page.evaluate(axe.source);
    const { violations } = (await own.page.evaluate('axe.run(document)')) as AxeResults;
    expect(violations.map(({ id }) => id)).toEqual([]);
    expect(await own.page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    await own.close();
  });

  it('no error in the console', () => {
    // The connection that the test itself tried.
    expect(opened.problems.filter((problem) => !/explainer\.css|404/.test(problem))).toEqual([]);
  });
});
