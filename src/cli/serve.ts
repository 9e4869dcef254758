import type { LocalTokens } from '../serve/app-route.ts';
import { createServeCommand } from '../serve/service.ts';
import { exitCodes } from '../server/lifecycle/exit.ts';
import { formatProblems } from '../server/settings/setting-report.ts';
import { readSettings } from '../server/settings/settings.ts';
import { runCommand } from './run-command.ts';

export async function runServe(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const ofGate = args.find((arg) => /^--(?:rules|scope)(?:=|$)/.test(arg));
  if (ofGate !== undefined) {
    // Users must not assume that this command applies rules.
    const fix = 'Rules are for another command. Write portcullis gate, or leave it out.';
    process.stderr.write(formatProblems([{ name: ofGate.replace(/=.*/s, ''), value: undefined, fix }]));
    return exitCodes.config;
  }
  return runCommand(
    environment,
    () => readSettings({ args, environment }),
    () => createServeCommand((issuer) => findLocalTokens(issuer, environment)),
  );
}

async function findLocalTokens(issuer: string, environment: NodeJS.ProcessEnv): Promise<LocalTokens | undefined> {
  // Loaded only for the documentation page of a service whose issuer is on this host.
  const { findLocalProvider, findRunning } = await import('../dev/provider/running.ts');
  const { findCacheFolder } = await import('../dev/provider/cache-folder.ts');
  const folder = findCacheFolder(environment);
  const [client, provider] = await Promise.all([findRunning(folder, issuer), findLocalProvider(folder, issuer)]);
  if (client === undefined) return undefined;
  return { admin: provider?.issuer === issuer ? provider.admin : undefined, token: client.getToken };
}
