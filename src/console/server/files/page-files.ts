import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageFolder } from '../../../package-folder.ts';
import { type Answer, createAnswer } from '../../../server/http/answer.ts';
import { pageHtml, refusedStyleSource } from './page-html.ts';
import { pageStyle } from './page-style.ts';

const folder = join(packageFolder, 'dist/console');

/** Headers of the page without a key, which has its styles inline. */
export const refusedHeaders = addHeaders(refusedStyleSource);
export const consoleHeaders = addHeaders("'self'");

function addHeaders(styles: string): readonly string[] {
  return [
    ...['cache-control', 'no-store'],
    ...['x-content-type-options', 'nosniff'],
    ...['referrer-policy', 'no-referrer'],
    ...['cross-origin-resource-policy', 'same-origin'],
    ...['cross-origin-opener-policy', 'same-origin'],
    ...['permissions-policy', 'camera=(), geolocation=(), microphone=()'],
    'content-security-policy',
    [
      "default-src 'none'",
      "script-src 'self'",
      `style-src ${styles}`,
      "connect-src 'self'",
      "img-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
      "trusted-types 'none'",
    ].join('; '),
  ];
}

export function readPageFiles(): ReadonlyMap<string, Answer> {
  const scripts = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => name.endsWith('.js'));
  return new Map([
    ['/console', file('text/html; charset=utf-8', pageHtml)],
    ['/console/style.css', file('text/css; charset=utf-8', pageStyle)],
    ['/console/icon.svg', file('image/svg+xml', icon)],
    ...scripts.map(
      (name) =>
        [`/console/${name}`, file('text/javascript; charset=utf-8', readFileSync(join(folder, name), 'utf8'))] as const,
    ),
  ]);
}

function file(type: string, text: string): Answer {
  return createAnswer(200, [...consoleHeaders, 'content-type', type], text);
}

const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#0b6e4f"/><path d="M7 8h18M9 8v16M16 8v16M23 8v16M7 15h18M7 22h18" fill="none" stroke="#fff" stroke-width="2.4" stroke-linecap="round"/></svg>`;
