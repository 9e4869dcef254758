// npm run release -- --dry-run: changelog, version, tag, packed tarball and public declarations of the next release.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { allowsBreaking, closeUnreleased, nextVersion, readNotes, readUnreleased } from './changelog.js';
import { compareDeclarations, formatDifferences, mayBreak, readDeclarations } from './declarations.js';

const help = `npm run release -- [--dry-run] [--version X.Y.Z] [--since REF] [--skip-package]

Without --dry-run: writes CHANGELOG.md, package.json and package-lock.json, commits, and creates a tag. It pushes nothing.

  --dry-run          prints the release and checks it; changes nothing
  --version X.Y.Z    this version instead of the computed one
  --since REF        compares declarations with this commit instead of the last tag
  --skip-package     without packing and checking the tarball
  --check-tag TAG    fails unless package.json and CHANGELOG.md belong to the tag
  --notes            prints the changelog of the version of package.json`;

const { values } = parseArgs({
  options: {
    'dry-run': { type: 'boolean', default: false },
    version: { type: 'string' },
    since: { type: 'string' },
    'skip-package': { type: 'boolean', default: false },
    'check-tag': { type: 'string' },
    notes: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const git = (...args) =>
  execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 2 ** 28 }).trim();
const changelog = readFileSync('CHANGELOG.md', 'utf8');
const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
const problems = [];

function lastTag() {
  try {
    return git('describe', '--tags', '--abbrev=0', '--match', 'v[0-9]*');
  } catch {
    return undefined; // no release yet
  }
}

/** Compares the public declarations with a commit. Prints every difference. */
function reportDeclarations(since) {
  const after = readDeclarations(readFileSync('docs/reference.md', 'utf8'));
  if (since === undefined) {
    console.log(`Public declarations: ${after.size}; no earlier release to compare with`);
    return false;
  }
  const differences = compareDeclarations(readDeclarations(git('show', `${since}:docs/reference.md`)), after);
  const breaking = differences.filter(mayBreak);
  console.log(
    `Public declarations since ${since}: ${after.size}, ${differences.length} differences, ${breaking.length} may break`,
  );
  if (differences.length > 0) console.log(formatDifferences(differences));
  return breaking.length > 0;
}

function release() {
  if (git('status', '--porcelain') !== '') problems.push('the working tree is not clean: commit first');
  const kinds = Object.entries(readUnreleased(changelog)).filter(([, entries]) => entries.length > 0);
  if (kinds.length === 0) problems.push('CHANGELOG.md has no unreleased entries');
  const tag = lastTag();
  const breaks = reportDeclarations(values.since ?? tag) || kinds.some(([kind]) => kind === 'Removed');
  const names = kinds.map(([kind]) => kind);
  const version =
    values.version ?? (tag === undefined ? manifest.version : nextVersion(manifest.version, { breaks, kinds: names }));
  if (!/^\d+\.\d+\.\d+$/.test(version)) problems.push(`"${version}" is not a version. Write X.Y.Z`);
  if (breaks && tag !== undefined && !allowsBreaking(manifest.version, version))
    problems.push(
      `${version} must not contain breaking changes: raise the ${version.startsWith('0.') ? 'minor' : 'major'} version`,
    );
  if (git('tag', '--list', `v${version}`) !== '') problems.push(`the tag v${version} exists`);

  const date = new Date().toISOString().slice(0, 10);
  const closed = closeUnreleased(changelog, version, date);
  console.log(`\nVersion ${version}, tag v${version}, ${date}`);
  for (const [kind, entries] of kinds) console.log(`  ${kind}: ${entries.length} entries`);
  if (!values['skip-package']) {
    console.log('\nThe packed tarball:');
    execFileSync(process.execPath, ['tools/package/main.js'], { stdio: 'inherit' });
  }
  for (const problem of problems) console.error(`problem: ${problem}`);
  if (problems.length > 0) return 1;
  if (values['dry-run']) {
    console.log('\nDry run: nothing was changed.');
    return 0;
  }
  writeFileSync('CHANGELOG.md', closed);
  for (const file of ['package.json', 'package-lock.json']) {
    const text = readFileSync(file, 'utf8').replaceAll(
      new RegExp(`("name": "${manifest.name}",\\s+"version": )"[^"]*"`, 'g'),
      `$1"${version}"`,
    );
    writeFileSync(file, text);
  }
  git('commit', '--all', '--message', `Release ${version}`);
  git('tag', '--annotate', `v${version}`, '--message', `Portcullis ${version}`);
  console.log(`\nCommitted and tagged. Publish with: git push --follow-tags`);
  return 0;
}

if (values.help) console.log(help);
else if (values.notes) console.log(readNotes(changelog, manifest.version));
else if (values['check-tag'] !== undefined) {
  if (values['check-tag'] !== `v${manifest.version}`) throw new RangeError(`package.json has ${manifest.version}`);
  readNotes(changelog, manifest.version);
} else process.exitCode = release();
