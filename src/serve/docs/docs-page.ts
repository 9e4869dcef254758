import { createHash } from 'node:crypto';
import type { DpopMode } from '../../http/credentials.ts';
import { metadataPath } from '../../refusal/challenge.ts';
import type { ErrorBodyFormat } from '../../refusal/error-body.ts';
import type { Endpoint } from '../../server/variants/endpoints.ts';
import { answersOf, scopesOf } from './docs-answers.ts';
import { runDocsPage } from './docs-script.ts';
import { docsStyle } from './docs-style.ts';

export interface DocsPage {
  write(base: string): string;
  /** Allows one script and one style sheet, by their hashes, and requests to this service only. */
  readonly contentSecurityPolicy: string;
}

export interface DocsPageSources {
  readonly endpoints: readonly Endpoint[];
  readonly insufficientScopeStatus: 401 | 403;
  readonly mode: DpopMode;
  /** `undefined` if the domain has a scheme, so that no issuer can match. */
  readonly issuer: string | undefined;
  readonly audience: string;
  readonly errorBody: ErrorBodyFormat;
  /** True if the page can get tokens of the local provider. */
  readonly isLocal?: boolean;
}

const baseMark = '$BASE';

const bearer = '-H "Authorization: Bearer $TOKEN" ';
const bound = '-H "Authorization: DPoP $TOKEN" -H "DPoP: $PROOF" ';
const credentials: Readonly<Record<DpopMode, string>> = { off: bearer, allowed: bearer, required: bound };

/** Creates the documentation page from the records of the routes, without external assets. */
export function createDocsPage(sources: DocsPageSources): DocsPage {
  const script = `(${runDocsPage.toString()})(window);`;
  const parts = writePage(sources, script).split(baseMark);
  const policy = [
    "default-src 'none'",
    `script-src 'sha256-${hashOf(script)}'`,
    `style-src 'sha256-${hashOf(docsStyle)}'`,
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ];
  return { write: (base) => parts.join(escapeHtml(base)), contentSecurityPolicy: policy.join('; ') };
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64');

function writePage(sources: DocsPageSources, script: string): string {
  const { endpoints, mode, issuer, audience, isLocal = false } = sources;
  const scopes = [...new Set(endpoints.flatMap(scopesOf))];
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Portcullis: endpoints</title>
<style>${docsStyle}</style>
</head>
<body>
<header>
<h1>Portcullis</h1>
<p>Endpoints that are open to all, to any valid access token, or to a token with a scope.
Each accepts <code>GET</code> and <code>HEAD</code>.</p>
<p><a href="openapi.json">OpenAPI 3.1 document</a> · <a href="${metadataPath.slice(1)}">Protected resource metadata</a></p>
<dl>
<dt>Base URL</dt><dd><code>${baseMark}</code></dd>
<dt>Issuer</dt><dd>${issuer === undefined ? 'none that can work: every token is refused' : `<code>${escapeHtml(issuer)}</code>`}</dd>
<dt>Audience</dt><dd><code>${escapeHtml(audience)}</code></dd>
<dt>Scopes</dt><dd>${scopes.map((scope) => `<code>${escapeHtml(scope)}</code>`).join(' ') || 'none'}</dd>
</dl>
</header>
<main>
${tokenSection(mode, isLocal ? scopes : undefined)}
<h2>Endpoints</h2>
${endpoints.map((endpoint, index) => article(endpoint, index, sources)).join('\n')}
${mode === 'off' ? '' : dpopSection(endpoints)}</main>
<script>${script}</script>
</body>
</html>
`;
}

function tokenSection(mode: DpopMode, localScopes: readonly string[] | undefined): string {
  const proof = `<label for="proof">DPoP proof${mode === 'required' ? '' : ', if the token is bound to a key'}</label>
<textarea id="proof" class="secret" rows="2" autocomplete="off" autocapitalize="off" spellcheck="false"></textarea>
`;
  return `<section id="try" class="try" aria-labelledby="try-name" hidden>
<h2 id="try-name">Try it</h2>
<p id="try-help">Paste an access token, and call an endpoint below. The token stays in this field, and goes only to this service.</p>
<label for="token">Access token</label>
<textarea id="token" class="secret" rows="3" autocomplete="off" autocapitalize="off" spellcheck="false" aria-describedby="try-help"></textarea>
${mode === 'off' ? '' : proof}${localScopes === undefined ? '' : localSection(mode, localScopes)}<button id="forget" class="quiet" type="button">Forget</button>
</section>`;
}

/** Requests tokens of the local provider. A bound token has a key of the page. */
function localSection(mode: DpopMode, scopes: readonly string[]): string {
  const checked = mode === 'required' ? ' checked' : '';
  const bound = `<label><input id="bound" type="checkbox"${checked}> Bound to a key of this page, with a proof for each call</label>
`;
  return `<div id="local" hidden>
<label for="scope">Scopes of a token of the local provider</label>
<input id="scope" value="${escapeHtml(scopes.join(' '))}" autocomplete="off" autocapitalize="off" spellcheck="false">
${mode === 'off' ? '' : bound}<button id="authorize" type="button">Authorize</button>
<p id="authorized" class="quiet" role="status"></p>
</div>
`;
}

function article(endpoint: Endpoint, index: number, sources: DocsPageSources): string {
  const { path, summary, access } = endpoint;
  const isOpen = access === 'open';
  const scopes = scopesOf(endpoint);
  const rows = answersOf(endpoint, sources);
  const kind = scopes.length > 0 ? 'scope' : isOpen ? 'open' : 'token';
  return `<article aria-labelledby="endpoint-${index}">
<div class="name"><h3 id="endpoint-${index}">GET ${escapeHtml(path)}</h3>
<span class="badge ${kind}">${badge(isOpen, scopes)}</span></div>
<p>${escapeHtml(summary)}.</p>
<table><tbody>
${rows.map(({ status, when }) => `<tr><th scope="row">${status}</th><td>${escapeHtml(when)}</td></tr>`).join('\n')}
</tbody></table>
<details><summary>Bodies<span class="quiet"> of GET ${escapeHtml(path)}</span></summary>
${rows.map(({ status, body }) => `<pre>${status}  ${escapeHtml(body)}</pre>`).join('\n')}
</details>
<pre>curl -i ${isOpen ? '' : credentials[sources.mode]}"${baseMark}${escapeHtml(path)}"</pre>
<div class="try" hidden>
<button type="button" data-path="${escapeHtml(path)}" data-access="${isOpen ? 'open' : 'token'}">Call GET ${escapeHtml(path)}</button>
<div class="answer" role="status">
<p class="status" hidden></p><pre class="head" hidden></pre><pre class="body" hidden></pre><p class="next" hidden></p><p class="link" hidden></p>
</div></div>
</article>`;
}

function dpopSection(endpoints: readonly Endpoint[]): string {
  const path = endpoints.find(({ access }) => access !== 'open')?.path ?? '/';
  const url = `${baseMark}${escapeHtml(path)}`;
  return `<section aria-labelledby="dpop">
<h2 id="dpop">A call with DPoP</h2>
<p>A token that is bound to a key is sent as <code>DPoP</code>, with a proof for this one call: a JWT that the client signs with the key.</p>
<pre>header  {"typ":"dpop+jwt","alg":"ES256","jwk":{"kty":"EC","crv":"P-256","x":"…","y":"…"}}
claims  {"jti":"a new one each time","htm":"GET","htu":"${url}","iat":now,"ath":"SHA-256 of the token, base64url"}</pre>
<pre>curl -i ${bound}"${url}"</pre>
<p>If the response is 401 with <code>DPoP-Nonce</code>, make another proof that has its value as the claim <code>nonce</code>.</p>
</section>
`;
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
