import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { metadataPath } from '../../../src/core/refusal/challenge.ts';
import { type DocsPageSources, docsPolicy, writeDocsPage } from '../../../src/serve/docs/docs-page.ts';
import type { Endpoint } from '../../../src/server/variants/endpoints.ts';
import { variants } from '../../../src/server/variants/variants.ts';

const base = 'https://api.example/v1';
const usual: DocsPageSources = {
  endpoints: variants.a.endpoints,
  mode: 'allowed',
  issuer: 'https://idp.example/',
  audience: 'https://api.example/',
};
const write = (more: Partial<DocsPageSources> = {}): string => writeDocsPage({ ...usual, ...more }, base);
const articlesOf = (html: string): readonly string[] => html.match(/<article>.*?<\/article>/gs) ?? [];

describe.each(Object.entries(variants))('variant %s', (_name, { endpoints }) => {
  const html = write({ endpoints });

  it('each endpoint, in order → its path, its summary, the access that it requires, and a curl line', () => {
    const articles = articlesOf(html);
    expect(articles).toHaveLength(endpoints.length);
    for (const [index, { access, path, summary }] of endpoints.entries()) {
      const scopes = access === 'open' ? [] : (access.scopes ?? []);
      expect(articles[index]).toContain(`<h2>GET ${path}</h2>`);
      expect(articles[index]).toContain(`<p>${summary}.</p>`);
      expect(articles[index]?.includes('Requires: nothing')).toBe(access === 'open');
      for (const scope of scopes) expect(articles[index]).toContain(`with the scope <code>${scope}</code>`);
      const credentials = access === 'open' ? '' : '-H "Authorization: Bearer $TOKEN" ';
      expect(articles[index]).toContain(`curl -i ${credentials}"${base}${path}"`);
    }
  });

  it('no script, no form, no other address; one style sheet, which the policy names by its hash', () => {
    expect(html).not.toMatch(/<(?:script|img|link|iframe|object|embed|form|base)\b|\bsrc=|<[^>]+ on\w+=|url\(|@import/);
    const addresses = html.match(/https?:\/\/[^\s<"&]+/g) ?? [];
    expect(addresses.filter((each) => !/^https:\/\/(?:api|idp)\.example\//.test(each))).toEqual([]);
    // Relative to /docs, so that they hold behind a proxy with a prefix as well.
    const links = [...html.matchAll(/href="([^"]*)"/g)].map(([, target]) => target);
    expect(links).toEqual(['openapi.json', metadataPath.slice(1)]);
    const [[, style = ''] = []] = [...html.matchAll(/<style>(.*?)<\/style>/gs)];
    expect(docsPolicy).toBe(
      `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    );
  });

  it('every element that opens closes', () => {
    const open: string[] = [];
    for (const [, slash, tag = ''] of html.matchAll(/<(\/?)([a-z][a-z0-9]*)\b[^>]*>/g)) {
      if (tag === 'meta') continue; // it has no end
      if (slash === '') open.push(tag);
      else expect(open.pop()).toBe(tag);
    }
    expect(open).toEqual([]);
  });
});

it('markup in an endpoint, an audience or a URL → escaped', () => {
  const evil: Endpoint = {
    path: '/<b>&"\'',
    summary: '<script>alert(1)</script>',
    access: { scopes: ['<i>', '"x"'] },
    schema: {},
    answer: () => ({}),
  };
  const html = writeDocsPage({ ...usual, endpoints: [evil], audience: '<b>' }, 'https://a.example/"><b>');
  expect(html).not.toMatch(/<script|<b>|<i>|\/">/);
  expect(html).toContain('GET /&#60;b&#62;&#38;&#34;&#39;');
  expect(html).toContain('scopes <code>&#60;i&#62;</code> <code>&#34;x&#34;</code>');
});

it.each([
  ['off', 'Authorization: Bearer $TOKEN', 'Bearer'],
  ['allowed', 'Authorization: Bearer $TOKEN', 'Bearer; DPoP'],
  ['required', 'Authorization: DPoP $TOKEN" -H "DPoP: $PROOF', 'DPoP'],
] as const)('DPoP %s → curl lines with an accepted scheme', (mode, line, schemes) => {
  const html = write({ mode });
  expect(html.split(line)).toHaveLength(5);
  expect(html).toContain(`<dt>Token schemes</dt><dd>${schemes}`);
});

it('no issuer, because the domain has a scheme → no token is admitted, and the page says so', () =>
  expect(write({ issuer: undefined })).toContain('<dt>Issuer</dt><dd>none that can match'));
