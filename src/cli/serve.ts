import type { LocalTokens } from '../serve/app-route.ts';
import { createServeCommand } from '../serve/service.ts';
import { readSettings } from '../server/settings/settings.ts';
import { requireValid } from './commands/failure.ts';
import type { Flags } from './commands/flags.ts';
import { runService } from './run-service.ts';

export async function runServe({ rest: args }: Flags<'serve'>, environment: NodeJS.ProcessEnv): Promise<number> {
  const ofGate = args.find((arg) => /^--(?:rules|scope)(?:=|$)/.test(arg));
  if (ofGate !== undefined) {
    // Users must not assume that this command applies rules.
    const fix = 'Rules are for another command. Write portcullis gate, or leave it out.';
    requireValid({ kind: 'problems', problems: [{ name: ofGate.replace(/=.*/s, ''), value: undefined, fix }] });
  }
  return runService(
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
