// Copies docs/ into .stage/ as the pages of the site: one page per export and per reason, and links that work there.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readFinderData } from './finder-data.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const stage = fileURLToPath(new URL('.stage/', import.meta.url));
const { repository, description } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const repositoryUrl = repository.url.replace(/^git\+/, '').replace(/\.git$/, '');

/** Anchor of a heading, as GitHub forms it. */
export const slugify = (heading) =>
  heading
    .trim()
    .toLowerCase()
    .replace(/<[^>]*>|[^\p{L}\p{N}\p{M} _-]/gu, '')
    .replaceAll(' ', '-');

/** Pages that are split: their sections become pages of a folder. */
const splits = {
  'reference.md': { folder: 'reference', title: 'Reference' },
  'refusals.md': { folder: 'refusals', title: 'Refusals' },
};
/** Pages that have another name on the site. */
const renamed = { 'README.md': 'contents.md' };

/** Writes the pages. Returns their paths and titles, in the order of their names. */
export function stagePages() {
  rmSync(stage, { recursive: true, force: true });
  cpSync(join(root, 'docs'), stage, { recursive: true, filter: (path) => !path.endsWith('.md') });
  cpSync(new URL('mark.svg', import.meta.url), join(stage, 'public/mark.svg'));
  const paths = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.md'))
    .sort();
  const sources = new Map(paths.map((path) => [path, readFileSync(join(root, 'docs', path), 'utf8')]));
  const targets = new Map(
    Object.keys(splits).flatMap((path) => findSections(sources.get(path) ?? '', splits[path], path)),
  );
  const pages = [];
  const write = (path, text) => {
    mkdirSync(dirname(join(stage, path)), { recursive: true });
    writeFileSync(join(stage, path), text);
    pages.push({ path, title: /^# (.*)$/m.exec(text)?.[1] ?? 'Portcullis' });
  };
  for (const [path, text] of sources) {
    const split = splits[path];
    if (split === undefined) write(renamed[path] ?? path, relink(text, path, renamed[path] ?? path, targets));
    else for (const page of splitPage(text, split, path)) write(page.path, relink(page.text, path, page.path, targets));
  }
  for (const name of readdirSync(new URL('pages', import.meta.url))) {
    write(name, fillIn(readFileSync(new URL(`pages/${name}`, import.meta.url), 'utf8')));
  }
  writeFileSync(join(stage, 'finder.json'), JSON.stringify(readFinderData()));
  return { pages, description };
}

/** Address of each section of a split page. */
function findSections(text, { folder }, path) {
  return sectionsOf(text).map(({ heading, name }) => [`${path}#${slugify(heading)}`, `${folder}/${name}.md`]);
}

/** Sections of level 3, with the module under which the page lists them. */
function sectionsOf(text) {
  let group = '';
  let about = '';
  const names = new Map();
  const sections = [];
  for (const part of text.split(/^(?=#{2,3} )/m).slice(1)) {
    const [, level, heading] = /^(#{2,3}) (.*)$/m.exec(part);
    if (level === '##') {
      group = heading;
      about = part
        .replace(/^.*$|<!-- .*? -->/gm, (line) => (line.startsWith('## ') || line.startsWith('<!--') ? '' : line))
        .trim();
      continue;
    }
    const base = heading.replace(/[^\w-]/g, '');
    // Some file systems ignore case.
    const count = names.get(base.toLowerCase()) ?? 0;
    names.set(base.toLowerCase(), count + 1);
    sections.push({ group, about, heading, name: count === 0 ? base : `${base}-${count + 1}`, text: part });
  }
  return sections;
}

function splitPage(text, { folder }, path) {
  const intro = text.slice(0, text.search(/^#{2,3} /m)).replace(/<!-- .*? -->\n?/g, '');
  const sections = sectionsOf(text);
  const lists = new Map();
  for (const section of sections) lists.set(section.group, [...(lists.get(section.group) ?? []), section]);
  const index = [...lists].map(([group, list]) => {
    const links = list.map(({ heading }) => `- [${heading}](${path}#${slugify(heading)})`);
    const head = group === '' ? '' : `## ${group}\n\n${list[0].about}\n\n`;
    return `${head}${links.join('\n')}\n`;
  });
  return [
    { path: `${folder}/index.md`, text: `${intro}\n${index.join('\n')}` },
    ...sections.map(({ heading, name, group, text: part }) => ({
      path: `${folder}/${name}.md`,
      text: part
        .replace(/^### .*$/m, `# ${heading}${folder === 'reference' && group !== '' ? `\n\nExport of ${group}.` : ''}`)
        .replace(/<!-- .*? -->\n?/g, ''),
    })),
  ];
}

/** Rewrites the links of a page: to pages of the site, and for other files to the repository. */
function relink(text, from, to, targets) {
  return text
    .split(/(^```[\s\S]*?^```$)/m)
    .map((part) =>
      part.startsWith('```')
        ? part
        : escapeTags(part).replace(/\]\(([^)\s#]*)(#[^)\s]*)?\)/g, (all, path, anchor = '') => {
            if (/^[a-z]+:/i.test(path) || (path === '' && splits[from] === undefined)) return all;
            const target = path === '' ? from : posix.join(posix.dirname(from), path);
            return `](${locate(target, anchor, to, targets)})`;
          }),
    )
    .join('');
}

/** Escapes angle brackets that Vue would read as elements, such as `<host>` in a sentence; code spans have no elements. */
function escapeTags(text) {
  return text.replace(/(`+)[\s\S]*?\1|<(?=\/?[a-z])/g, (part) => (part === '<' ? '&lt;' : part));
}

function locate(target, anchor, to, targets) {
  const page = targets.get(`${target}${anchor}`);
  if (page !== undefined) return posix.relative(posix.dirname(to), page) || page;
  if (splits[target] !== undefined) return posix.relative(posix.dirname(to), `${splits[target].folder}/index.md`);
  if (target.startsWith('../')) return `${repositoryUrl}/blob/main/${target.slice('../'.length)}${anchor}`;
  if (!target.endsWith('.md') || !existsSync(join(root, 'docs', target))) {
    return existsSync(join(root, 'docs', target)) ? posix.relative(posix.dirname(to), target) : `${target}${anchor}`;
  }
  return `${posix.relative(posix.dirname(to), renamed[target] ?? target)}${anchor}`;
}

/** Replaces `<!-- file: PATH -->` by the file, and `<!-- figures -->` by the rows about other servers. */
function fillIn(text) {
  return text
    .replace(/<!-- file: (\S+) -->/g, (_all, path) => readFileSync(join(root, path), 'utf8').trimEnd())
    .replace('<!-- figures -->', () => {
      const rows = readFileSync(join(root, 'docs/performance.md'), 'utf8').match(
        /^\| warm : (?:Express|Fastify|Hono|HAProxy).*$/gm,
      );
      if (rows === null) throw new Error('docs/performance.md has no rows about other servers');
      const cells = rows.map((row) => row.split('|').map((cell) => cell.trim()));
      return [
        '| one token, on one processor, one worker | ratio | 95 % interval |',
        '| --- | ---: | ---: |',
        ...cells.map(
          ([, what, ratio, interval]) =>
            `| ${what.replace('warm : ', '')} | ${ratio} | ${interval.replace(' *', '')} |`,
        ),
      ].join('\n');
    });
}
