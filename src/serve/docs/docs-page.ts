import { createHash } from 'node:crypto';
import type { DpopMode } from '../../core/http/credentials.ts';
import { metadataPath } from '../../core/refusal/challenge.ts';
import { mark } from '../../server/http/mark.ts';
import type { Endpoint } from '../../server/variants/endpoints.ts';

export interface DocsPageSources {
  readonly endpoints: readonly Endpoint[];
  readonly mode: DpopMode;
  /** `undefined` if the domain has a scheme, so that no issuer can match. */
  readonly issuer: string | undefined;
  readonly audience: string;
}

const style = `
:root { color-scheme: light dark; --quiet: light-dark(#52605a, #a0b0a8); --soft: light-dark(#f1f4f2, #1c2622);
  --line: light-dark(#d7ded9, #2a3731); --link: light-dark(#0a6b4c, #62d3a8); }
body { font: 16px/1.55 system-ui, sans-serif; color: light-dark(#16211c, #e4ece8); background: light-dark(#fff, #151d1a);
  max-width: 58rem; margin: 0 auto; padding: 2rem 1rem 4rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; } svg { width: 1.8rem; vertical-align: text-bottom; } h2 { font: 600 1.05rem ui-monospace, monospace; margin: 0; }
p { margin: .4rem 0; } a { color: var(--link); }
code, pre { font: .85rem/1.5 ui-monospace, monospace; }
pre { background: var(--soft); border-radius: .4rem; padding: .6rem .8rem; margin: .6rem 0 0; white-space: pre-wrap; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; } dt { color: var(--quiet); } dd { margin: 0; }
article { border: 1px solid var(--line); border-radius: .6rem; padding: 1rem 1.2rem; margin: 1rem 0; }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
`;

/** Headers of the page: one style sheet by its hash, and nothing else. */
export const docsPolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
].join('; ');

const bearer = '-H "Authorization: Bearer $TOKEN" ';
const bound = '-H "Authorization: DPoP $TOKEN" -H "DPoP: $PROOF" ';

/** Writes the documentation page: each endpoint, the access that it requires, and a `curl` line. */
export function writeDocsPage({ endpoints, mode, issuer, audience }: DocsPageSources, base: string): string {
  const articles = endpoints.map(({ path, summary, access }) => {
    const credentials = access === 'open' ? '' : mode === 'required' ? bound : bearer;
    return `<article>
<h2>GET ${escapeHtml(path)}</h2>
<p>${escapeHtml(summary)}.</p>
<p>Requires: ${access === 'open' ? 'nothing; a token is ignored' : describeScopes(access.scopes ?? [])}</p>
<pre>curl -i ${credentials}"${escapeHtml(`${base}${path}`)}"</pre>
</article>`;
  });
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Portcullis: endpoints</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${mark} Portcullis</h1>
<p>Endpoints that are open to all, to any valid access token, or to a token with a scope. Each accepts <code>GET</code> and <code>HEAD</code>.</p>
<p><a href="openapi.json">OpenAPI 3.1 document</a> · <a href="${metadataPath.slice(1)}">Protected resource metadata</a></p>
<dl>
<dt>Issuer</dt><dd>${issuer === undefined ? 'none that can match: every token is refused' : `<code>${escapeHtml(issuer)}</code>`}</dd>
<dt>Audience</dt><dd><code>${escapeHtml(audience)}</code></dd>
<dt>Token schemes</dt><dd>${mode === 'off' ? 'Bearer' : mode === 'required' ? 'DPoP (RFC 9449)' : 'Bearer; DPoP (RFC 9449) for a token that is bound to a key'}</dd>
</dl>
${articles.join('\n')}
</main>
</body>
</html>
`;
}

function describeScopes(scopes: readonly string[]): string {
  if (scopes.length === 0) return 'a valid access token';
  const names = scopes.map((scope) => `<code>${escapeHtml(scope)}</code>`).join(' ');
  return `a valid access token with the ${scopes.length === 1 ? 'scope' : 'scopes'} ${names}`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
