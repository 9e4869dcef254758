#!/usr/bin/env node
import * as modules from 'node:module';
import { join } from 'node:path';
import { exitCodes, holdReload } from '../server/lifecycle/exit.ts';
import { commandTable, isCommand } from './commands/command-table.ts';
import { refuseRuntime } from './node-version.ts';

// Any version of Node must parse these imports; other modules are loaded after the check below.

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

async function main(): Promise<number> {
  const problem = refuseRuntime(process.versions.node);
  if (problem !== undefined) {
    process.stderr.write(`${problem}\n`);
    return exitCodes.unavailable;
  }
  // Without a listener, Node opens its debugger on this signal.
  if (process.listenerCount('SIGUSR1') === 0) process.on('SIGUSR1', () => {});
  if (/^(?:serve|gate)$/.test(process.argv[2] ?? '')) holdReload();
  await keepCompiledCode(process.env);
  const [first, second = ''] = process.argv.slice(2);
  const [name, ...args] = first === 'help' && isCommand(second) ? [second, '--help'] : process.argv.slice(2);
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    const { formatHelp, formatSettingsHelp } = await import('./commands/help.ts');
    process.stdout.write(name === 'help' && second === 'settings' ? formatSettingsHelp() : formatHelp());
    return name === undefined ? exitCodes.usage : exitCodes.ok;
  }
  if (name === '--version' || name === '-v' || name === 'version') {
    const { version } = await import('../core/version.ts');
    process.stdout.write(`${version}\n`);
    return exitCodes.ok;
  }
  if (!isCommand(name)) {
    const { findLikeliest } = await import('../core/likeliest-name.ts');
    const names = Object.keys(commandTable);
    const meant = findLikeliest(name, names, 4);
    const hint = meant === undefined ? '' : ` Did you mean ${meant}?`;
    process.stderr.write(`portcullis: there is no such command.${hint} Commands: ${names.join(', ')}.\n`);
    return exitCodes.usage;
  }
  const { runCommand } = await import('./commands/run.ts');
  return runCommand(name, args, process.env);
}

// A command that has ended is not held by what it opened: a listener, a worker, the channel to a parent.
process.exit(await main());
