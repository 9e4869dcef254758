import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { parseSync, Visitor } from 'rolldown/utils';
import { patterns } from './patterns.js';

/**
 * A piece of English, on one line.
 *
 * @typedef {object} Passage
 * @property {'code' | 'docs' | 'title'} kind
 * @property {boolean} isDocComment
 * @property {string} text
 * @property {readonly { readonly from: number, readonly line: number }[]} lines Offset in `text` at which each line of the file starts.
 */

/** @typedef {{ file: string, line: number, kind: Passage['kind'], found: string, write: string }} Finding */

/** The counts that a folder may have. */
export const baselineFile = 'tools/prose/baseline.txt';

/** Generated pages, and the list of the patterns. */
const exempt = new Set(['docs/reference.md', 'tools/prose/patterns.js']);
const generatedBlock = /<!-- (?:(?:table|output|file|bench): |scores |survivors )[\s\S]*?<!-- end -->/g;
const codeFence = /^ *```[\s\S]*?^ *```/gm;
const inlineCode = /``.+?``|`[^`]*`/g;

/** Replaces a match by spaces, so that lines keep their numbers. @param {string} text */
const blank = (text) => text.replace(/[^\n]/g, ' ');

/** @param {Passage['kind']} kind @param {boolean} isDocComment @param {readonly (readonly [number, string])[]} numbered */
function joinLines(kind, isDocComment, numbered) {
  const lines = [];
  let text = '';
  for (const [line, content] of numbered) {
    const words = content.replace(inlineCode, ' `` ').trim();
    if (words === '') continue;
    if (text !== '') text += ' ';
    lines.push({ from: text.length, line });
    text += words;
  }
  return { kind, isDocComment, text, lines };
}

/** Reads the paragraphs, list items and table rows of a Markdown page. @param {string} page */
function readPage(page) {
  const lines = page.replace(generatedBlock, blank).replace(codeFence, blank).split('\n');
  /** @type {[number, string][][]} */
  const paragraphs = [[]];
  for (const [index, line] of lines.entries()) {
    if (/^\s*$|^\s*([-*|>#]|\d+\.) ?/.test(line)) paragraphs.push([]);
    paragraphs.at(-1)?.push([index + 1, line.replace(/^\s*([-*>]|#+|\d+\.) /, '')]);
  }
  return paragraphs.map((paragraph) => joinLines('docs', false, paragraph)).filter(({ text }) => text !== '');
}

/** The function that is called, without its members: `it` of `it.each(cases)`. */
function rootOf(callee) {
  let node = callee;
  while (node.type === 'MemberExpression' || node.type === 'CallExpression' || node.type === 'TaggedTemplateExpression')
    node = node.object ?? node.callee ?? node.tag;
  return node.name;
}

/** The content of a string or template; `undefined` for any other node. */
function textOf(node) {
  if (node?.type === 'Literal' && typeof node.value === 'string') return node.value;
  if (node?.type === 'TemplateLiteral') return node.quasis.map(({ value }) => value.cooked ?? value.raw).join('`…`');
  if (node?.type === 'BinaryExpression' && node.operator === '+') {
    const [left, right] = [textOf(node.left), textOf(node.right)];
    return left === undefined || right === undefined ? undefined : left + right;
  }
  return undefined;
}

/** Reads the comments, strings and test titles of a script. @param {string} file @param {string} source */
function readScript(file, source) {
  const { program, comments, errors } = parseSync(file, source);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`);
  const starts = [0, ...[...source.matchAll(/\n/g)].map(({ index }) => index + 1)];
  const lineOf = (offset) => starts.findLastIndex((start) => start <= offset) + 1;
  const isTest = file.startsWith('test/');
  /** @type {Passage[]} */
  const passages = [];
  let previousLine = -1;
  /** @type {[number, string][]} */
  let block = [];
  for (const { type, value, start } of comments) {
    const line = lineOf(start);
    const stripped = value
      .split('\n')
      .map((content, index) => /** @type {[number, string]} */ ([line + index, content.replace(/^\s*\*\s?/, '')]));
    const ownLine = source.slice(starts[line - 1], start).trim() === '';
    if (type === 'Line' && ownLine && line === previousLine + 1 && block.length > 0) block.push(...stripped);
    else {
      if (block.length > 0) passages.push(joinLines('code', false, block));
      block = [];
      if (type === 'Line') block = [...stripped];
      else passages.push(joinLines('code', value.startsWith('*'), stripped));
    }
    previousLine = type === 'Line' ? line : -1;
  }
  if (block.length > 0) passages.push(joinLines('code', false, block));

  const add = (node, kind) => {
    const text = textOf(node);
    if (text !== undefined && (kind === 'title' || /\S\s+\S+\s+\S/.test(text)))
      passages.push(
        joinLines(
          kind,
          false,
          text
            .split('\n')
            .map((content, index) => [lineOf(node.start) + (node.type === 'TemplateLiteral' ? index : 0), content]),
        ),
      );
  };
  const addString = (node) => {
    if (!isTest) add(node, 'code');
  };
  new Visitor({
    CallExpression(node) {
      const [title] = node.arguments;
      if (!isTest || title === undefined || !['it', 'test', 'describe'].includes(rootOf(node.callee))) return;
      if (node.callee.type === 'MemberExpression') return;
      add(title, 'title');
    },
    Literal: addString,
    TemplateLiteral: addString,
  }).visit(program);
  return passages.filter(({ text }) => text !== '');
}

/** Files whose English is held: pages, and scripts that are not copies of other projects. */
export function listFiles() {
  return execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { encoding: 'utf8' })
    .split('\n')
    .filter((file) => /\.(md|[cm]?[jt]sx?)$/.test(file) && !/(^|\/)(vendor|vectors)\//.test(file))
    .filter((file) => !exempt.has(file) && existsSync(file));
}

/** Finds each use of a banned pattern in a file. @param {string} file @returns {readonly Finding[]} */
export function findInFile(file) {
  const content = readFileSync(file, 'utf8');
  const passages = file.endsWith('.md') ? readPage(content) : readScript(file, content);
  return passages.flatMap(({ kind, isDocComment, text, lines }) =>
    patterns
      .filter(
        ({ kinds, docCommentsOnly }) =>
          kinds.includes(kind) && (docCommentsOnly !== true || isDocComment || kind === 'title'),
      )
      .flatMap(({ pattern, write }) =>
        [...text.matchAll(pattern)].map(({ index, 0: found }) => ({
          file,
          line: lines.findLast(({ from }) => from <= index)?.line ?? 1,
          kind,
          found: found.trim(),
          write,
        })),
      ),
  );
}

/** The folder under which a file is counted: two levels, or one for the files of a top folder. @param {string} file */
export function folderOf(file) {
  const folder = posix.dirname(file).split('/').slice(0, 2).join('/');
  return folder === '.' ? file : folder;
}

/**
 * Reads the counts that folders may have: a folder and a number in each line. Git merges the file by union, so a folder can have
 * several lines; the lowest number counts.
 *
 * @returns {Record<string, number>}
 */
export function readBaseline() {
  /** @type {Record<string, number>} */
  const counts = {};
  for (const line of readFileSync(baselineFile, 'utf8').trim().split('\n')) {
    const [folder = '', count] = line.split(' ');
    counts[folder] = Math.min(counts[folder] ?? Number.POSITIVE_INFINITY, Number(count));
  }
  return counts;
}

/** Formats counts. A folder keeps its line at 0, or a merge could bring an older count back. @param {Record<string, number>} counts */
export const formatBaseline = (counts) =>
  `${Object.keys(counts)
    .toSorted()
    .map((folder) => `${folder} ${counts[folder]}`)
    .join('\n')}\n`;

/** Counts findings by folder. @param {readonly Finding[]} findings @returns {Record<string, number>} */
export function countByFolder(findings) {
  /** @type {Record<string, number>} */
  const counts = {};
  for (const { file } of findings) counts[folderOf(file)] = (counts[folderOf(file)] ?? 0) + 1;
  return Object.fromEntries(Object.entries(counts).toSorted(([a], [b]) => a.localeCompare(b)));
}
