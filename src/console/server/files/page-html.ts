import { hash } from 'node:crypto';

export const pageHtml = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Portcullis console</title>
<link rel="icon" href="/console/icon.svg">
<link rel="stylesheet" href="/console/style.css">
<script type="module" src="/console/page.js"></script>
</head>
<body>
<noscript><p>The console needs JavaScript. <code>portcullis explain --id ID --admin URL</code> works without it.</p></noscript>
<div id="page"></div>
</body>
</html>
`;

const refusedStyle = `
:root { color-scheme: light dark; }
body { max-width: 40rem; margin: 12vh auto; padding: 0 1.5rem; font: 16px/1.6 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; }
pre { padding: .8rem 1rem; border: 1px solid; border-radius: .5rem; white-space: pre-wrap; }
`;
/** Source of the content security policy that allows the styles of the page without a key. */
export const refusedStyleSource = `'sha256-${hash('sha256', refusedStyle, 'base64')}'`;

/** The page without a key. It loads nothing, because every other response requires the key. */
export function formatRefused(text: string, port: number | undefined): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="/console/icon.svg">
<title>Portcullis console</title>
<style>${refusedStyle}</style>
</head>
<body>
<main>
<h1>The console needs a new link</h1>
<p>${text} A session ends after 12 hours, or when the service stops.</p>
<p><code>portcullis dev</code> prints a link when it starts. Its <code>console key</code>, or <code>CONSOLE_KEY_FILE</code>, is the file of the next key:</p>
<pre tabindex="0"><code>echo "http://127.0.0.1:${port}/console?key=$(cat "$CONSOLE_KEY_FILE")"</code></pre>
</main>
</body>
</html>
`;
}

/** Redirects to the page by HTML: browsers send a SameSite=Strict cookie only for a navigation from the same site. */
export const enteredHtml = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url=/console">
<link rel="icon" href="/console/icon.svg">
<title>Portcullis console</title>
</head>
<body>
<p><a href="/console">Open the console</a></p>
</body>
</html>
`;
