import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { metadataPath } from '../../../src/refusal/challenge.ts';
import { errorBodyFormats } from '../../../src/refusal/error-body.ts';
import { createDocsPage, type DocsPageSources } from '../../../src/serve/docs/docs-page.ts';
import type { Endpoint } from '../../../src/server/variants/endpoints.ts';
import { type Variant, type VariantName, variants } from '../../../src/server/variants/variants.ts';

const names = Object.keys(variants) as VariantName[]; // the keys are the names

const usual: DocsPageSources = {
  endpoints: variants.a.endpoints,
  insufficientScopeStatus: 403,
  mode: 'allowed',
  issuer: 'https://idp.example/',
  audience: 'https://api.example/',
  errorBody: errorBodyFormats.detail,
};
const base = 'https://api.example/v1';

function create(more: Partial<DocsPageSources>) {
  const page = createDocsPage({ ...usual, ...more });
  return { html: page.write(base), contentSecurityPolicy: page.contentSecurityPolicy };
}

function articles(html: string): readonly string[] {
  return html.match(/<article .*?<\/article>/gs) ?? [];
}

describe.each(names)('variant %s', (name) => {
  const { endpoints, insufficientScopeStatus }: Variant = variants[name];
  const { html, contentSecurityPolicy } = create({ endpoints, insufficientScopeStatus });

  it('has one article for each endpoint, in order', () => {
    expect(articles(html).map((article) => /<h3 [^>]*>GET (.*)<\/h3>/.exec(article)?.[1])).toEqual(
      endpoints.map(({ path }) => path),
    );
  });

  it('says of each endpoint what access it needs, and how to call it', () => {
    for (const [index, { access, summary }] of endpoints.entries()) {
      const article = articles(html)[index] ?? '';
      const scopes = access === 'open' ? [] : (access.scopes ?? []);
      const badge = access === 'open' ? 'open' : scopes.length > 0 ? `scope ${scopes.join(' ')}` : 'access token';
      expect(article).toContain(`>${badge}</span>`);
      expect(article).toContain(`<p>${summary}.</p>`);
      expect(article.includes('Authorization: Bearer $TOKEN')).toBe(access !== 'open');
      expect(article).toContain('<th scope="row">400</th>');
      expect(article.includes('<th scope="row">401</th>')).toBe(access !== 'open');
      expect(article.includes('with a valid access token that lacks the scope')).toBe(scopes.length > 0);
      if (scopes.length > 0)
        expect(article).toMatch(new RegExp(`>${insufficientScopeStatus}</th><td>with a valid access token that lacks`));
    }
  });

  it('loads nothing: no picture, no separate script, no other address', () => {
    expect(html).not.toMatch(/<(?:script [^>]*|img|link|iframe|object|embed|form)\b/);
    expect(html).not.toMatch(
      /\bsrc=|<[^>]+ on\w+=|url\(|@import|\bstyle=|innerHTML|localStorage|sessionStorage|document\.cookie/,
    );
    const addresses = html.match(/https?:\/\/[^\s<"&]+/g) ?? [];
    expect(addresses.filter((each) => !/^https:\/\/(?:api|idp)\.example\//.test(each))).toEqual([]);
    const links = [...html.matchAll(/href="([^"]*)"/g)].map(([, target]) => target);
    // Relative to /docs, so that they hold behind a proxy with a prefix as well.
    expect(links).toEqual(['openapi.json', metadataPath.slice(1)]);
  });

  it('its policy allows its one style sheet and its one script, by their hashes, calls to itself, and nothing else', () => {
    const hash = (text = ''): string => createHash('sha256').update(text).digest('base64');
    const read = (tag: string) =>
      [...html.matchAll(new RegExp(`<${tag}>(.*?)</${tag}>`, 'gs'))].map(([, text]) => text);
    const [styles, scripts] = [read('style'), read('script')];
    expect([styles.length, scripts.length]).toEqual([1, 1]);
    expect(contentSecurityPolicy.split('; ')).toEqual([
      "default-src 'none'",
      `script-src 'sha256-${hash(scripts[0])}'`,
      `style-src 'sha256-${hash(styles[0])}'`,
      "connect-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
      "trusted-types 'none'",
    ]);
  });

  it('has the URL of the service in each call, issuer and audience, and no mark that is left', () => {
    expect(html).not.toContain('$BASE');
    for (const { path } of endpoints) expect(html).toContain(`&quot;${base}${path}&quot;`.replaceAll('&quot;', '"'));
    expect(html).toContain('<dt>Issuer</dt><dd><code>https://idp.example/</code></dd>');
    expect(html).toContain('<dt>Audience</dt><dd><code>https://api.example/</code></dd>');
  });

  it('shows a body for each response, in the form of the service', () => {
    for (const [index, article] of articles(html).entries()) {
      const statuses = [...article.matchAll(/<th scope="row">(\d+)</g)].map(([, status]) => status);
      const bodies = [...article.matchAll(/<pre>(\d+) {2}(.*?)<\/pre>/g)];
      expect(bodies.map(([, status]) => status)).toEqual(statuses);
      for (const [, , body = ''] of bodies) expect(() => JSON.parse(body.replaceAll('&quot;', '"'))).not.toThrow();
      const { access } = endpoints[index] ?? { access: 'open' };
      expect(article.includes('"error')).toBe(false);
      expect(article.includes('data-access="open"')).toBe(access === 'open');
    }
  });

  it('is a whole document: every element that opens closes', () => {
    const open: string[] = [];
    const markup = html.replace(/<(script|style)>.*?<\/\1>/gs, '');
    for (const [, slash, tag = ''] of markup.matchAll(/<(\/?)([a-z][a-z0-9]*)\b[^>]*>/g)) {
      if (tag === 'meta') continue; // it has no end
      if (slash === '') open.push(tag);
      else expect(open.pop()).toBe(tag);
    }
    expect(open).toEqual([]);
    expect(html).toMatch(/^<!doctype html>\n<html lang="en">/);
  });
});

it('markup in the words of an endpoint → escaped', () => {
  const evil: Endpoint = {
    path: '/<b>&"\'',
    summary: '<script>alert(1)</script>',
    access: { scopes: ['<i>', '"x"'] },
    schema: {},
    answer: () => ({}),
  };
  const { html } = create({ endpoints: [evil], mode: 'off', audience: '<b>' });
  expect(html).not.toMatch(/<script>alert|<b>|<i>/);
  expect(html).toContain('/&lt;b&gt;&amp;&quot;&#39;');
  expect(html).toContain('scope &lt;i&gt; &quot;x&quot;');
});

it.each([
  ['off', 'Authorization: Bearer $TOKEN'],
  ['allowed', 'Authorization: Bearer $TOKEN'],
  ['required', 'Authorization: DPoP $TOKEN" -H "DPoP: $PROOF'],
] as const)('DPoP %s → calls are shown under a scheme that is accepted', (mode, expected) => {
  const { html } = create({ mode });
  const calls = articles(html).join('\n');
  expect(calls.split(expected)).toHaveLength(5);
  expect(calls.match(/-H "Authorization:/g)).toHaveLength(4);
  expect(html.includes('id="proof"')).toBe(mode !== 'off');
  expect(html.includes('A call with DPoP')).toBe(mode !== 'off');
});

it('a base with special characters → escaped', () => {
  expect(createDocsPage(usual).write('https://a.example/"><b>')).not.toContain('<b>');
});
