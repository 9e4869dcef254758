// The bench's own packages: installed where they are missing or are not those of the lock file.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('.', import.meta.url));

/** Where the lock file and what npm wrote beside the packages name the same versions, nothing is to be done. */
function isInstalled() {
  const written = `${folder}node_modules/.package-lock.json`;
  if (!existsSync(written)) return false;
  const { packages: wanted } = JSON.parse(readFileSync(`${folder}package-lock.json`, 'utf8'));
  const { packages: present } = JSON.parse(readFileSync(written, 'utf8'));
  return Object.entries(wanted).every(
    ([path, about]) => path === '' || !isWanted(about) || present[path]?.version === about.version,
  );
}

/** An optional package is for some machines alone; which C library is here, is not looked at. */
function isWanted({ optional, os, cpu, libc }) {
  return !optional || (os?.includes(process.platform) && cpu?.includes(process.arch) && libc === undefined);
}

/** Runs `npm ci` in the folder of the bench; no package there needs a script of its own to run. */
export function installPackages() {
  if (isInstalled()) return;
  console.error('Installing the packages of the bench.');
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: folder,
    stdio: 'inherit',
  });
}
