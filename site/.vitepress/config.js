import { defineConfig } from 'vitepress';
import { pages, slugify } from '../pages-of-site.js';

const titleOf = (path) => pages.find((page) => page.path === path)?.title;
const item = (path) => ({ text: titleOf(path)?.replaceAll('`', ''), link: `/${path.replace(/(index)?\.md$/, '')}` });
const within = (folder) => pages.filter(({ path }) => path.startsWith(`${folder}/`)).map(({ path }) => item(path));
const group = (text, paths, collapsed = false) => ({
  text,
  collapsed,
  items: paths.filter((path) => titleOf(path) !== undefined).map(item),
});

const sidebar = [
  group('Start', ['getting-started.md', 'finder.md', 'library.md', 'providers.md', 'testing.md', 'migrate.md']),
  { text: 'Frameworks', collapsed: true, items: [...within('frameworks'), item('mcp.md'), item('recipes.md')] },
  { text: 'Gate', collapsed: true, items: [item('gate.md'), ...within('gate')] },
  group('Why a request was refused', ['explain.md', 'refusals/index.md', 'causes.md']),
  group('Operate', ['operations.md', 'behaviour.md', 'settings.md']),
  group('Tokens', ['dpop.md', 'other-proofs.md']),
  group(
    'Look up',
    ['reference/index.md', 'performance.md', 'evidence/security.md', 'evidence/attacks.md', 'evidence/runtimes.md'],
    true,
  ),
];

export default defineConfig({
  title: 'Portcullis',
  description: 'OAuth 2.0 resource server: validates access tokens, and explains every refusal',
  srcDir: '.stage',
  outDir: 'dist',
  base: process.env.SITE_BASE ?? '/',
  // Scripts of the page only: nothing is loaded from another origin.
  head: [['meta', { name: 'referrer', content: 'no-referrer' }]],
  lastUpdated: false,
  // Pages of links in view would be loaded too.
  router: { prefetchLinks: false },
  metaChunk: true,
  markdown: {
    anchor: { slugify },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  themeConfig: {
    logo: '/mark.svg',
    // Guides before the pages of exports, reasons and causes, which repeat their words in short sections.
    search: {
      provider: 'local',
      options: {
        miniSearch: {
          searchOptions: {
            boostDocument: (id) => (/^\/(?:reference|refusals|causes|evidence)\b/.test(id) ? 0.2 : 1),
          },
        },
      },
    },
    nav: [
      { text: 'Get started', link: '/getting-started' },
      { text: 'Docs', link: '/contents' },
      { text: 'Reference', link: '/reference/' },
      // A separate document outside the router, reached by a full page load.
      { text: 'Explain', link: '/explainer.html', target: '_self' },
    ],
    sidebar: {
      '/reference/': [{ text: 'Reference', link: '/reference/', items: within('reference').slice(1) }, ...sidebar],
      '/refusals/': [{ text: 'Refusals', link: '/refusals/', items: within('refusals').slice(1) }, ...sidebar],
      '/': sidebar,
    },
    outline: [2, 3],
  },
});
