import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageFolder } from '../../core/package-folder.ts';
import { type Answer, createAnswer } from '../../server/http/exchange.ts';
import { mark, markFile } from '../../server/http/mark.ts';
import { pageStyle } from './page-style.ts';

const folder = join(packageFolder, 'dist/console');

/** Redirects to the page by HTML: browsers send a SameSite=Strict cookie only for a navigation from the same site. */
export const enteredHtml = formatHtml(
  '<meta http-equiv="refresh" content="0; url=/console">',
  '<p><a href="/console">Open the console</a></p>',
);

const refusedStyle = `
:root { color-scheme: light dark; }
body { max-width: 40rem; margin: 12vh auto; padding: 0 1.5rem; font: 16px/1.6 system-ui, sans-serif; overflow-wrap: anywhere;
  color: light-dark(#16211c, #e4ece8); background: light-dark(#fff, #151d1a); }
h1 { font-size: 1.4rem; } code { font: .9em ui-monospace, monospace; } svg { width: 2rem; }
pre { padding: .8rem 1rem; border-radius: .5rem; white-space: pre-wrap; background: light-dark(#f1f4f2, #1c2622); }
`;

/** The page without a key. It loads nothing, because every other response requires the key. */
export function formatRefused(text: string, port: number | undefined): string {
  return formatHtml(
    `<style>${refusedStyle}</style>`,
    `<main>
${mark}
<h1>Open the console with its link</h1>
<p>${text} The service makes one at each start. A page stays open for 12 hours, or until the service stops.</p>
<p><code>portcullis dev</code> prints the link. Its <code>console key</code>, or <code>CONSOLE_KEY_FILE</code>, is the file of the key:</p>
<pre tabindex="0"><code>echo "http://127.0.0.1:${port}/console?key=$(cat "$CONSOLE_KEY_FILE")"</code></pre>
</main>`,
  );
}

function formatHtml(head: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="/console/icon.svg">
<title>Portcullis console</title>
${head}
</head>
<body>
${body}
</body>
</html>
`;
}

export const consoleHeaders = addHeaders("'self'");
/** Headers of the page without a key, which has its styles inline. */
export const refusedHeaders = addHeaders(`'sha256-${hash('sha256', refusedStyle, 'base64')}'`);

function addHeaders(styles: string): readonly string[] {
  const policy = [
    ...["default-src 'none'", "script-src 'self'", `style-src ${styles}`, "connect-src 'self'", "img-src 'self'"],
    ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
    ...["require-trusted-types-for 'script'", "trusted-types 'none'"],
  ];
  return [
    ...['cache-control', 'no-store'],
    ...['x-content-type-options', 'nosniff'],
    ...['referrer-policy', 'no-referrer'],
    ...['cross-origin-resource-policy', 'same-origin'],
    ...['cross-origin-opener-policy', 'same-origin'],
    ...['permissions-policy', 'camera=(), geolocation=(), microphone=()'],
    ...['content-security-policy', policy.join('; ')],
  ];
}

/** Reads the files of the page, by path. `entry`: the first script. */
export function readPageFiles(entry: 'page' | 'dev'): ReadonlyMap<string, Answer> {
  const page = formatHtml(
    `<meta name="color-scheme" content="light dark">
<link rel="stylesheet" href="/console/style.css">
<script type="module" src="/console/${entry}.js"></script>`,
    `<noscript><p>The console needs JavaScript. <code>portcullis explain --id ID --admin URL</code> works without it.</p></noscript>
<div id="page"></div>`,
  );
  const file = (name: string, type: string, content: string) =>
    [name, createAnswer(200, [...consoleHeaders, 'content-type', type], content)] as const;
  return new Map([
    file('/console', 'text/html; charset=utf-8', page),
    file('/console/style.css', 'text/css; charset=utf-8', pageStyle),
    file('/console/icon.svg', 'image/svg+xml', markFile),
    ...readdirSync(folder).map((name) =>
      file(`/console/${name}`, 'text/javascript; charset=utf-8', readFileSync(join(folder, name), 'utf8')),
    ),
  ]);
}
