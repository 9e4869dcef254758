// Pages of the site, as build.js has staged them.
import { readFileSync } from 'node:fs';

export { slugify } from './stage.js';

/** @type {readonly { readonly path: string; readonly title: string }[]} */
export const pages = JSON.parse(readFileSync(new URL('.stage/pages.json', import.meta.url), 'utf8'));
