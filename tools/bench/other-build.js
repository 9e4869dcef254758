// Another commit, checked out and built in a temporary folder; this one's packages serve it if it locks the same ones.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { say } from './running.js';

const here = fileURLToPath(new URL('../..', import.meta.url));

/** Builds a commit: its folder, its name, and `remove`. Throws `RangeError` if git does not know it. */
export function buildCommit(ref) {
  const git = (...args) =>
    execFileSync('git', args, { cwd: here, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  const commit = findCommit(git, ref);
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-compare-'));
  const remove = () => {
    process.removeListener('exit', remove);
    try {
      git('worktree', 'remove', '--force', folder);
    } catch {
      rmSync(folder, { recursive: true, force: true });
    }
  };
  process.once('exit', remove);
  git('worktree', 'add', '--detach', folder, commit);
  const npm = (...args) => execFileSync('npm', args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  if (readLock(folder) === readLock(here)) {
    symlinkSync(join(here, 'node_modules'), join(folder, 'node_modules'));
  } else {
    say(`${ref} locks other packages: installing them`);
    npm('ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error');
  }
  say(`building ${ref}`);
  npm('run', 'build');
  return { folder, name: `${ref} (${commit.slice(0, 8)})`, remove };
}

function findCommit(git, ref) {
  try {
    return git('rev-parse', '--verify', '--end-of-options', `${ref}^{commit}`).trim();
  } catch {
    throw new RangeError(`git does not know a commit ${ref}. To compare: npm run bench -- compare REF`);
  }
}

const readLock = (folder) => readFileSync(join(folder, 'package-lock.json'), 'utf8');
