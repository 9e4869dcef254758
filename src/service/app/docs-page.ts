import { createHash } from 'node:crypto';
import type { DpopMode } from '../../http/credentials.ts';
import { metadataPath } from '../../refusal/metadata-link.ts';
import type { Endpoint } from '../variants/endpoint.ts';

/** A page and the policy it is served with. */
export interface DocsPage {
  readonly html: string;
  /** Value of Content-Security-Policy: nothing is loaded from anywhere. */
  readonly contentSecurityPolicy: string;
}

/** What the page is made from. */
export interface DocsPageSources {
  readonly endpoints: readonly Endpoint[];
  readonly insufficientScopeStatus: 401 | 403;
  readonly mode: DpopMode;
}

const bearer = '-H "Authorization: Bearer $TOKEN" ';
const credentials: Readonly<Record<DpopMode, string>> = {
  off: bearer,
  allowed: bearer,
  required: '-H "Authorization: DPoP $TOKEN" -H "DPoP: $PROOF" ',
};

const style = `
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --accent: #0a7d5a; }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 58rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; margin: 0 0 .25rem; letter-spacing: -.02em; }
h2 { font: 600 1.05rem ui-monospace, monospace; margin: 0; }
p { margin: .4rem 0; }
a { color: var(--accent); }
article { border: 1px solid var(--line); border-radius: .6rem; padding: 1rem 1.2rem; margin: 1rem 0; }
header p { max-width: 44rem; }
.badge { float: right; font-size: .8rem; border: 1px solid currentColor; border-radius: 1rem; padding: .05rem .6rem; }
.open { color: #2a6fbb; } .token { color: var(--accent); } .scope { color: #b35900; }
pre { background: var(--soft); border-radius: .4rem; padding: .6rem .8rem; margin: .6rem 0 0; overflow-x: auto; font-size: .85rem; }
table { border-collapse: collapse; width: 100%; margin: .6rem 0 0; font-size: .9rem; }
td, th { text-align: left; padding: .25rem .6rem .25rem 0; border-top: 1px solid var(--line); vertical-align: top; }
`;

/** The documentation page: made once, from the same records as the routes; no script, no outside asset. */
export function createDocsPage(sources: DocsPageSources): DocsPage {
  const articles = sources.endpoints.map((endpoint) => article(endpoint, sources)).join('\n');
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Portcullis: endpoints</title>
<style>${style}</style>
</head>
<body>
<header>
<h1>Portcullis</h1>
<p>Endpoints that are open to all, to any valid access token, or to a token with a scope.
Each answers <code>GET</code> and <code>HEAD</code>.</p>
<p><a href="openapi.json">OpenAPI 3.1 document</a> · <a href="${metadataPath.slice(1)}">Protected resource metadata</a></p>
</header>
<main>
${articles}
</main>
</body>
</html>
`;
  const hash = createHash('sha256').update(style).digest('base64');
  return {
    html,
    contentSecurityPolicy: `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  };
}

function article(endpoint: Endpoint, { insufficientScopeStatus, mode }: DocsPageSources): string {
  const { path, summary, access } = endpoint;
  const scopes = access === 'open' ? [] : (access.scopes ?? []);
  const rows =
    access === 'open'
      ? ['200 | always; a token that is sent along is not looked at']
      : [
          scopes.length > 0 ? '200 | with a valid access token that has the scope' : '200 | with a valid access token',
          ...(scopes.length > 0 ? [`${insufficientScopeStatus} | with a valid access token that lacks it`] : []),
          '401 | without one, or with one that is not valid',
          '503 | when the keys of the provider are not to be had; try again later',
        ];
  return `<article>
<span class="badge ${scopes.length > 0 ? 'scope' : access === 'open' ? 'open' : 'token'}">${badge(access === 'open', scopes)}</span>
<h2>GET ${escapeHtml(path)}</h2>
<p>${escapeHtml(summary)}.</p>
<table><tbody>
${rows
  .map(
    (row) =>
      `<tr>${row
        .split(' | ')
        .map((cell) => `<td>${escapeHtml(cell)}</td>`)
        .join('')}</tr>`,
  )
  .join('\n')}
</tbody></table>
<pre>curl -i ${access === 'open' ? '' : credentials[mode]}"$BASE${escapeHtml(path)}"</pre>
</article>`;
}

function badge(open: boolean, scopes: readonly string[]): string {
  if (open) return 'open';
  return scopes.length > 0 ? `scope ${scopes.map(escapeHtml).join(' ')}` : 'access token';
}

const entities: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ["'", '&#39;'],
]);

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities.get(character) ?? '');
}
