#!/usr/bin/env node
import * as modules from 'node:module';
import { join } from 'node:path';
import { exitCodes } from '../server/lifecycle/exit.ts';
import { refuseOldNode } from './node-version.ts';

// What is imported here is parsed by any Node that somebody may have; every other module is loaded behind the check below.

/** Commands that have a help of their own. */
const withOwnHelp: ReadonlySet<string> = new Set(['dev', 'token', 'explain', 'doctor', 'rules']);

/** One command: loaded only when it is asked for, so that each starts as fast as it can. */
type Command = (args: readonly string[], environment: NodeJS.ProcessEnv) => Promise<number>;

const commands: ReadonlyMap<string, { readonly summary: string; readonly load: () => Promise<Command> }> = new Map([
  ['serve', { summary: 'Run the service.', load: async () => (await import('./serve.ts')).runServe }],
  [
    'dev',
    {
      summary: 'Run a local identity provider and the service before it; for development.',
      load: async () => (await import('./dev.ts')).runDev,
    },
  ],
  [
    'token',
    {
      summary: 'Print an access token of the running local provider.',
      load: async () => (await import('./token.ts')).runToken,
    },
  ],
  [
    'explain',
    {
      summary: 'Show why a call was refused, check by check; or what a reason means.',
      load: async () => (await import('./explain.ts')).runExplain,
    },
  ],
  [
    'doctor',
    {
      summary: 'Look at the provider, the network and the running service, and name what is wrong.',
      load: async () => (await import('./doctor.ts')).runDoctor,
    },
  ],
  [
    'gate',
    {
      summary: 'Judge requests for other servers, beside a proxy or as the proxy (--upstream).',
      load: async () => (await import('./gate.ts')).runGate,
    },
  ],
  [
    'rules',
    {
      summary: 'Check a rules file of the gate, or run sample requests against it.',
      load: async () => (await import('./rules.ts')).runRules,
    },
  ],
  [
    'config',
    {
      summary: 'Print the effective settings and where each comes from.',
      load: async () => (await import('./config.ts')).runConfig,
    },
  ],
]);

/**
 * Keeps compiled code between starts, with Node 22.8 and later. The folder is the user's own: the default lies in the
 * folder for temporary files, which others can write to. A folder that cannot be written costs only the time saved.
 */
async function keepCompiledCode(environment: NodeJS.ProcessEnv): Promise<void> {
  const { enableCompileCache } = modules as { readonly enableCompileCache?: (folder: string) => unknown }; // of newer types
  if (enableCompileCache === undefined) return;
  const { findCacheFolder } = await import('../dev/provider/cache-folder.ts');
  try {
    enableCompileCache(join(findCacheFolder(environment), 'compiled'));
  } catch {
    // A user without a home folder, as in some containers.
  }
}

/** `help COMMAND` is the help of that command. */
function readWords(words: readonly string[]): readonly string[] {
  const [first, second] = words;
  return first === 'help' && second !== undefined && commands.has(second) ? [second, '--help'] : words;
}

async function main(): Promise<number> {
  const problem = refuseOldNode(process.versions.node);
  if (problem !== undefined) {
    process.stderr.write(`${problem}\n`);
    return exitCodes.unavailable;
  }
  await keepCompiledCode(process.env);
  const [name, ...args] = readWords(process.argv.slice(2));
  const asked = args.includes('--help') || args.includes('-h');
  const isGeneral = name === undefined || name === '--help' || name === '-h' || name === 'help';
  if (isGeneral || (asked && commands.has(name) && !withOwnHelp.has(name))) {
    const { help } = await import('./help.ts');
    process.stdout.write(help([...commands].map(([command, { summary }]) => [command, summary])));
    return name === undefined ? exitCodes.usage : exitCodes.ok;
  }
  if (name === '--version' || name === '-v' || name === 'version') {
    const { readVersion } = await import('../server/lifecycle/version.ts');
    process.stdout.write(`${readVersion()}\n`);
    return exitCodes.ok;
  }
  const command = commands.get(name);
  if (command === undefined) {
    const { findLikeliest } = await import('../likeliest-name.ts');
    const meant = findLikeliest(name, commands.keys(), 4);
    const hint = meant === undefined ? '' : ` Did you mean ${meant}?`;
    process.stderr.write(
      `portcullis: there is no such command.${hint} Commands: ${[...commands.keys()].join(', ')}.\n`,
    );
    return exitCodes.usage;
  }
  return (await command.load())(args, process.env);
}

// A command that has ended is not held by what it opened: a listener, a worker, the channel to a parent.
process.exit(await main());
