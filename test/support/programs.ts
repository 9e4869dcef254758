import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { basename, delimiter, dirname, join } from 'node:path';

/** Programs that some tests start, and the package of Debian and Ubuntu that has each of them. */
const packages = {
  apache2: 'apache2',
  caddy: 'caddy',
  chromium: 'chromium',
  curl: 'curl',
  faketime: 'faketime',
  haproxy: 'haproxy',
  jq: 'jq',
  mkfifo: 'coreutils',
  nginx: 'nginx',
  openssl: 'openssl',
  prometheus: 'prometheus',
  promtool: 'prometheus',
  python3: 'python3',
  'python3-jwt': 'python3-jwt python3-cryptography',
  'redis-sentinel': 'redis-sentinel',
  'redis-server': 'redis-server',
  sed: 'sed',
  'systemd-analyze': 'systemd',
  tinyproxy: 'tinyproxy',
} as const;

/** PyJWT as Debian installs it, a module and not a program. */
const pyjwt = '/usr/lib/python3/dist-packages/jwt/__init__.py';

export type ProgramName = keyof typeof packages;

/** Other systems call the program by this name. */
const otherNames: Partial<Record<ProgramName, string>> = { apache2: 'httpd', chromium: 'chromium-browser' };

declare module 'vitest' {
  interface TaskMeta {
    /** Programs that the test needs and that are not here. */
    missingPrograms?: readonly ProgramName[];
  }
}

/** The second argument of `describe` and `it`. */
export interface Needs {
  readonly skip: boolean;
  readonly meta: { readonly missingPrograms: readonly ProgramName[] };
}

/**
 * Options of a suite or a test that starts these programs: it is skipped if one is missing. The end of the run names
 * each missing program once, and in CI the run fails.
 *
 * @example
 * describe('a replay store in Redis', needs('redis-server'), () => { … });
 */
export function needs(...programs: readonly ProgramName[]): Needs {
  const missingPrograms = programs.filter((program) => findProgram(program) === undefined);
  return { skip: missingPrograms.length > 0, meta: { missingPrograms } };
}

/** The path of a program; `undefined` if it is not installed or `ABSENT_PROGRAMS` names it. */
export function findProgram(program: ProgramName): string | undefined {
  if (isDeclaredAbsent(program)) return undefined;
  if (program === 'python3-jwt') return existsSync(pyjwt) ? pyjwt : undefined;
  const names = [program, otherNames[program] ?? program];
  return searchFolders()
    .flatMap((folder) => names.map((name) => join(folder, name)))
    .find(isExecutable);
}

/** The path of a program; throws if it is missing. For tests that are skipped without it. */
export function requireProgram(program: ProgramName): string {
  const path = findProgram(program);
  if (path === undefined)
    throw new Error(`${program} is not installed. To install it: sudo apt-get install ${packages[program]}`);
  return path;
}

/** The packages of Debian and Ubuntu that have these programs. */
export function listPackages(programs: readonly ProgramName[]): string {
  return [...new Set(programs.map((program) => packages[program]))].join(' ');
}

/**
 * Reports whether `ABSENT_PROGRAMS` names the program: names separated by commas, or `all`. Its tests are skipped even
 * if it is installed, and the skip does not fail the run in CI.
 */
export function isDeclaredAbsent(program: ProgramName): boolean {
  const declared = (process.env['ABSENT_PROGRAMS'] ?? '').split(',');
  return declared.includes('all') || declared.includes(program);
}

/** `PATH`, with the `sbin` next to each `bin`: servers are installed there, and not every `PATH` has it. */
function searchFolders(): readonly string[] {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return [
    ...folders,
    ...folders.filter((folder) => basename(folder) === 'bin').map((folder) => join(dirname(folder), 'sbin')),
  ];
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
