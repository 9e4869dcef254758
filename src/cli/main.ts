#!/usr/bin/env node
import * as modules from 'node:module';
import { join } from 'node:path';
import { exitCodes } from '../server/lifecycle/exit.ts';
import { refuseOldNode } from './node-version.ts';

// Any version of Node must parse these imports; other modules are loaded after the check below.

const readsSettings: ReadonlySet<string> = new Set(['serve', 'gate', 'config']);
const withOwnHelp: ReadonlySet<string> = new Set(['dev', 'token', 'explain', 'doctor', 'rules', 'revoke']);

/** One command, loaded on demand, so that each starts fast. */
type Command = (args: readonly string[], environment: NodeJS.ProcessEnv) => Promise<number>;

const table: Readonly<Record<string, { readonly summary: string; readonly load: () => Promise<Command> }>> = {
  serve: {
    summary: 'Run the service.',
    load: async () => (await import('./serve.ts')).runServe,
  },
  dev: {
    summary: 'Run a local identity provider and the service; for development.',
    load: async () => (await import('./dev.ts')).runDev,
  },
  token: {
    summary: 'Print an access token of the running local provider.',
    load: async () => (await import('./token.ts')).runToken,
  },
  explain: {
    summary: 'Explain a refused request, check by check, or a reason.',
    load: async () => (await import('./explain.ts')).runExplain,
  },
  doctor: {
    summary: 'Check the provider, the network and the running service.',
    load: async () => (await import('./doctor.ts')).runDoctor,
  },
  gate: {
    summary: 'Authorize requests for other servers, next to a proxy or as the proxy (--upstream).',
    load: async () => (await import('./gate.ts')).runGate,
  },
  rules: {
    summary: 'Check a rules file of the gate, or run sample requests against it.',
    load: async () => (await import('./rules.ts')).runRules,
  },
  revoke: {
    summary: 'End access tokens before they expire: of a user, a session or a client, or one token.',
    load: async () => (await import('./revoke/revoke.ts')).runRevoke,
  },
  config: {
    summary: 'Print the effective settings and where each comes from.',
    load: async () => (await import('./config.ts')).runConfig,
  },
};
const commands = new Map(Object.entries(table));

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
  // Without a listener, Node opens its debugger on this signal.
  if (process.listenerCount('SIGUSR1') === 0) process.on('SIGUSR1', () => {});
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
  const unknown = readsSettings.has(name) ? (await import('./flag-problem.ts')).findUnknownFlag(args) : undefined;
  if (unknown !== undefined) {
    process.stderr.write(`portcullis: ${unknown}\n`);
    return exitCodes.usage;
  }
  return (await command.load())(args, process.env);
}

// A command that has ended is not held by what it opened: a listener, a worker, the channel to a parent.
process.exit(await main());
