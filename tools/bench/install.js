// node tools/bench/install.js [FOLDER]: installs the packages of a tool if they differ from its lock file.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const bench = fileURLToPath(new URL('.', import.meta.url));

/** Reports whether the installed versions equal the lock file. */
function isInstalled(folder) {
  const written = `${folder}node_modules/.package-lock.json`;
  if (!existsSync(written)) return false;
  const { packages: wanted } = JSON.parse(readFileSync(`${folder}package-lock.json`, 'utf8'));
  const { packages: present } = JSON.parse(readFileSync(written, 'utf8'));
  return Object.entries(wanted).every(
    ([path, about]) => path === '' || !isWanted(about) || present[path]?.version === about.version,
  );
}

/** Reports whether an optional package is for this platform. The C library is ignored. */
function isWanted({ optional, os, cpu, libc }) {
  return !optional || (os?.includes(process.platform) && cpu?.includes(process.arch) && libc === undefined);
}

/** Runs `npm ci` in the folder of a tool, without install scripts. Default: the bench. */
export function installPackages(folder = bench) {
  if (isInstalled(folder)) return;
  console.error(`Installing the packages in ${folder}`);
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: folder,
    stdio: 'inherit',
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) installPackages(process.argv[2]);
