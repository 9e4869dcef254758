import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import {
  allowsBreaking,
  closeUnreleased,
  nextVersion,
  readNotes,
  readUnreleased,
} from '../../tools/release/changelog.js';
import {
  compareDeclarations,
  formatDifferences,
  mayBreak,
  readDeclarations,
} from '../../tools/release/declarations.js';
import { useFolder } from '../support/folder.ts';

const page = (code: string, name = 'Options') =>
  `# Reference\n\n## \`portcullis\`\n\n### \`${name}\`\n\nText.\n\n\`\`\`ts\n${code}\n\`\`\`\n`;
const options = 'interface Options {\n  /** Seconds. */\n  readonly age?: number;\n}';

describe('differences of the public declarations', () => {
  it.each([
    ['nothing changed', options, options, []],
    ['another comment', options, options.replace('Seconds', 'Minutes'), []],
    ['new optional member', options, options.replace('}', '  readonly size?: number;\n}'), [['changed', false]]],
    ['new required member', options, options.replace('}', '  readonly size: number;\n}'), [['changed', true]]],
    ['member removed', options, 'interface Options {\n}', [['changed', true]]],
    ['another type', options, options.replace('number', 'string'), [['changed', true]]],
  ])('%s', (_, before, after, expected) => {
    const found = compareDeclarations(readDeclarations(page(before)), readDeclarations(page(after)));
    expect(found.map((each) => [each.kind, mayBreak(each)])).toEqual(expected);
  });

  it('renamed declaration → one removed, which may break, and one added', () => {
    const found = compareDeclarations(readDeclarations(page(options)), readDeclarations(page(options, 'Settings')));
    expect(found.map((each) => [each.name, each.kind, mayBreak(each)])).toEqual([
      ['portcullis: Options', 'removed', true],
      ['portcullis: Settings', 'added', false],
    ]);
    expect(formatDifferences(found)).toMatch(/^MAY BREAK {2}portcullis: Options \(removed\)\ncompatible/);
  });

  it('the reference of this version → declarations of every entry point', () => {
    const declarations = readDeclarations(readFileSync('docs/reference.md', 'utf8'));
    const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as { exports: Record<string, unknown> };
    for (const entry of Object.keys(exports).filter((name) => !name.endsWith('.json')))
      expect([...declarations.keys()].join('\n')).toContain(`portcullis${entry.slice(1)}: `);
    expect(declarations.get('portcullis: createResourceServer')?.join()).toContain('createResourceServer');
  });
});

const changelog =
  '# Changelog\n\n## [Unreleased]\n\n### Fixed\n\n- One.\n\n### Added\n\n## [1.2.3] - 2026-01-01\n\n### Added\n\n- Zero.\n';

describe('versions and changelog', () => {
  it.each([
    ['1.2.3', { breaks: false, kinds: ['Fixed', 'Security'] }, '1.2.4'],
    ['1.2.3', { breaks: false, kinds: ['Fixed', 'Added'] }, '1.3.0'],
    ['1.2.3', { breaks: true, kinds: ['Fixed'] }, '2.0.0'],
    ['0.2.3', { breaks: true, kinds: ['Fixed'] }, '0.3.0'],
  ])('%s with %j → %s', (version, changes, expected) => expect(nextVersion(version, changes)).toBe(expected));

  it.each([
    ['1.2.3', '2.0.0', true],
    ['1.2.3', '1.3.0', false],
    ['0.2.3', '0.3.0', true],
    ['0.2.3', '0.2.4', false],
  ])('breaking change from %s to %s → %s', (from, to, expected) => expect(allowsBreaking(from, to)).toBe(expected));

  it('unreleased entries → the section of the version, under an empty one', () => {
    expect(readUnreleased(changelog)).toEqual({ Fixed: ['- One.'], Added: [] });
    const closed = closeUnreleased(changelog, '1.2.4', '2026-02-01');
    expect(readUnreleased(closed)).toEqual({});
    expect(readNotes(closed, '1.2.4')).toBe('### Fixed\n\n- One.\n\n### Added');
    expect(() => readNotes(closed, '9.9.9')).toThrow(RangeError);
  });

  it('the changelog of this version → has unreleased entries', () =>
    expect(Object.values(readUnreleased(readFileSync('CHANGELOG.md', 'utf8'))).flat().length).toBeGreaterThan(0));
});

describe('release --dry-run', () => {
  const main = fileURLToPath(new URL('../../tools/release/main.js', import.meta.url));
  const files = {
    'package.json': '{ "name": "gate", "version": "1.2.3" }',
    'CHANGELOG.md': changelog,
    'docs/reference.md': page(options),
  };
  const folder = useFolder();
  const identity = ['-c', 'user.name=release', '-c', 'user.email=release@example.com', '-c', 'commit.gpgsign=false'];
  const git = (...args: readonly string[]) => execFileSync('git', [...identity, ...args], { cwd: folder });
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  const release = (...args: readonly string[]) =>
    spawnSync(process.execPath, [main, '--dry-run', '--skip-package', ...args], { cwd: folder, encoding: 'utf8' });
  mkdirSync(join(folder, 'docs'));
  git('init', '--quiet');
  for (const [name, text] of Object.entries(files)) write(name, text);
  git('add', '.');
  git('commit', '--quiet', '--message', 'First');

  it('clean tree → 0, the version, and nothing changes', () => {
    const { status, stdout } = release();
    expect(stdout).toMatch(
      /^Version 1\.2\.3, tag v1\.2\.3, .*\n {2}Fixed: 1 entries\n\nDry run: nothing was changed\.$/m,
    );
    expect(status).toBe(0);
    expect(String(git('status', '--porcelain'))).toBe('');
    expect(String(git('tag'))).toBe('');
  });

  it('a member removed since the last tag → the next major version; a smaller one is refused with 1', () => {
    git('tag', 'v1.2.3');
    write('docs/reference.md', page('interface Options {\n}'));
    git('commit', '--quiet', '--all', '--message', 'Second');
    const { status, stdout } = release();
    expect(stdout).toContain('MAY BREAK  portcullis: Options (changed)');
    expect(stdout).toContain('Version 2.0.0, tag v2.0.0');
    expect(status).toBe(0);
    expect(release('--version', '1.3.0')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('raise the major'),
    });
  });

  it('changed file → 1', () => {
    write('package.json', '{ "name": "gate", "version": "1.2.4" }');
    expect(release()).toMatchObject({ status: 1, stderr: expect.stringContaining('commit first') });
  });
});
