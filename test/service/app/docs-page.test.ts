import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { metadataPath } from '../../../src/refusal/metadata-link.ts';
import { createDocsPage } from '../../../src/service/app/docs-page.ts';
import type { Endpoint } from '../../../src/service/variants/endpoint.ts';
import { type Variant, type VariantName, variants } from '../../../src/service/variants/variants.ts';

const names = Object.keys(variants) as VariantName[]; // the keys are the names

function articles(html: string): readonly string[] {
  return html.match(/<article>.*?<\/article>/gs) ?? [];
}

describe.each(names)('variant %s', (name) => {
  const { endpoints, insufficientScopeStatus }: Variant = variants[name];
  const { html, contentSecurityPolicy } = createDocsPage({ endpoints, insufficientScopeStatus, mode: 'allowed' });

  it('has one article for each endpoint, in order', () => {
    expect(articles(html).map((article) => /<h2>GET (.*)<\/h2>/.exec(article)?.[1])).toEqual(
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
      expect(article.includes('<td>401</td>')).toBe(access !== 'open');
      expect(article.includes('with a valid access token that lacks it')).toBe(scopes.length > 0);
      if (scopes.length > 0) expect(article).toContain(`<td>${insufficientScopeStatus}</td><td>with a valid`);
    }
  });

  it('loads nothing: no script, no picture, no address elsewhere', () => {
    expect(html).not.toMatch(/<(?:script|img|link|iframe|object|embed|form)\b/);
    expect(html).not.toMatch(/\bsrc=|\bon\w+=|https?:|url\(|@import|\bstyle=/);
    const links = [...html.matchAll(/href="([^"]*)"/g)].map(([, target]) => target);
    // Relative to /docs, so that they hold behind a proxy with a prefix as well.
    expect(links).toEqual(['openapi.json', metadataPath.slice(1)]);
  });

  it('its policy allows its one style sheet, by its hash, and nothing else', () => {
    const styles = [...html.matchAll(/<style>(.*?)<\/style>/gs)].map(([, text]) => text ?? '');
    expect(styles).toHaveLength(1);
    const hash = createHash('sha256')
      .update(styles[0] ?? '')
      .digest('base64');
    expect(contentSecurityPolicy.split('; ')).toEqual([
      "default-src 'none'",
      `style-src 'sha256-${hash}'`,
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ]);
  });

  it('is a whole document: every element that opens closes', () => {
    const open: string[] = [];
    for (const [, slash, tag = ''] of html.matchAll(/<(\/?)([a-z][a-z0-9]*)\b[^>]*>/g)) {
      if (tag === 'meta') continue;
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
  const { html } = createDocsPage({ endpoints: [evil], insufficientScopeStatus: 403, mode: 'off' });
  expect(html).not.toMatch(/<script|<b>|<i>/);
  expect(html).toContain('/&lt;b&gt;&amp;&quot;&#39;');
  expect(html).toContain('scope &lt;i&gt; &quot;x&quot;');
});

it.each([
  ['off', 'Authorization: Bearer $TOKEN'],
  ['allowed', 'Authorization: Bearer $TOKEN'],
  ['required', 'Authorization: DPoP $TOKEN" -H "DPoP: $PROOF'],
] as const)('DPoP %s → calls are shown under a scheme that is accepted', (mode, expected) => {
  const { html } = createDocsPage({ endpoints: variants.a.endpoints, insufficientScopeStatus: 403, mode });
  expect(html.split(expected)).toHaveLength(5);
  expect(html.match(/Authorization:/g)).toHaveLength(4);
});
