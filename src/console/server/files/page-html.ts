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
