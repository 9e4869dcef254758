import { runLocally } from '../dev/dev.ts';
import { defaultAudience, defaultIdpPort } from '../dev/provider/defaults.ts';
import { UsageError } from './commands/failure.ts';
import type { Flags } from './commands/flags.ts';

export async function runDev({ values }: Flags<'dev'>, environment: NodeJS.ProcessEnv): Promise<number> {
  const { 'idp-port': idpPort = String(defaultIdpPort), audience = defaultAudience, ...others } = values;
  const { port, variant, upstream, rules, exchange, 'only-provider': onlyProvider = false } = others;
  if (!/^\d{1,5}$/.test(idpPort)) throw new UsageError('--idp-port takes a number from 0 to 65535.');
  if (exchange !== undefined && (upstream === undefined || rules !== undefined)) {
    throw new UsageError('--exchange needs --upstream, and no --rules: rules have their own exchanges.');
  }
  const flags = { port, idpPort: Number(idpPort), variant, audience, upstream, rules, exchange, onlyProvider };
  return runLocally(flags, environment);
}
